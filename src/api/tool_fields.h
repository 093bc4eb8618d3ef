// api/tool_fields.h
// What a chat request says of tools and reasoning, beside its messages, into text::ChatInput. Only
// for models whose chat format takes them (text::ChatAbilities); api/chat_request.cc refuses them
// for others.
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

// [{"type": "function", "function": {"name", "description", "parameters", "strict"}}].
base::Result<std::vector<text::ToolSpec>> ReadTools(const JsonValue& value,
                                                    const std::string& path);
// "none", "auto", "required", or {"type": "function", "function": {"name"}}.
base::Status ReadToolChoice(const JsonValue& value, const std::string& path,
                            text::ChatInput& input);
// The calls of an assistant's message: [{"id", "type": "function", "function": {"name",
// "arguments"}}].
base::Result<std::vector<text::ToolCall>> ReadToolCalls(const JsonValue& value,
                                                        const std::string& path);
// "none", "minimal", "low", "medium", "high", "xhigh", "max", or a number from 1 to 100.
base::Result<std::string> ReadEffort(const JsonValue& value, const std::string& path);
// {"type": "enabled" | "disabled", "budget_tokens": N} into `thinking` and `reasoning_tokens_max`;
// a budget, of 1 token at least, is for "enabled" alone.
base::Status ReadThinking(const JsonValue& value, const std::string& path, text::ChatInput& input);

}  // namespace plumb::api
