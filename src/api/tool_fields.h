// api/tool_fields.h
// What a chat request says of tools, beside its messages, into text::ChatInput. Only for models
// whose chat format takes them (text::ChatAbilities); api/chat_request.cc refuses them for others.
// Read next: api/custom_tools.h.
#pragma once

#include <string>
#include <vector>

#include "api/json.h"
#include "base/result.h"
#include "text/chat_input.h"

namespace plumb::api {

constexpr size_t kToolsMax = 128;
constexpr size_t kToolNameBytesMax = 64;
constexpr size_t kToolTextBytesMax = 1u << 20;  // a description, or the arguments of one call

// All: kInvalidArgument with the path of the member at fault.

// A value type.
struct ChatTools {
  std::vector<text::ToolSpec> specs;  // as the model is told
  std::vector<std::string> custom;    // names of those that are custom tools
};
// [{"type": "function", "function": {"name", "description", "parameters", "strict"}}, {"type":
// "custom", "custom": {"name", "description", "format"}}], each of a name of its own.
base::Result<ChatTools> ReadTools(const JsonValue& value, const std::string& path);
// "none", "auto" or "required", of Responses as well.
base::Status ReadToolMode(const std::string& word, const std::string& path, text::ChatInput& input);
// "none", "auto", "required", {"type": "function" | "custom", T: {"name"}}, or {"type":
// "allowed_tools", "allowed_tools": {"mode", "tools"}}, which takes the others out of
// `input.tools`. To be read when `input.tools` has been filled in; `custom` as in ChatTools.
// kInvalidArgument also: a name that no tool has.
base::Status ReadToolChoice(const JsonValue& value, const std::string& path,
                            const std::vector<std::string>& custom, text::ChatInput& input);
// The calls of an assistant's message: [{"id", "type": "function", "function": {"name",
// "arguments"}}, {"id", "type": "custom", "custom": {"name", "input"}}].
base::Result<std::vector<text::ToolCall>> ReadToolCalls(const JsonValue& value,
                                                        const std::string& path);

}  // namespace plumb::api
