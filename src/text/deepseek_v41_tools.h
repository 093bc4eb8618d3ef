// text/deepseek_v41_tools.h
// Tools in DeepSeek-V4.1's encoding: the block of the system message that declares them, calls as
// an assistant's message shows them, and their checks. Rules: docs/deepseek_v41_chat.md. Read
// next: text/deepseek_v41_prompt.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/status.h"
#include "text/chat_input.h"
#include "text/ordered_json.h"
#include "text/prompt_segments.h"

namespace plumb::text {

// What opens a block of calls in an answer, and in a prompt that asks for one.
constexpr std::string_view kDeepseekCalls = "<｜DSML｜ calls>";
constexpr std::string_view kDeepseekInvokeEnd = "</｜DSML｜ invoke>";

// At most 64 letters, digits, '_' and '-'.
bool IsToolName(std::string_view name);

// "## Tools ... ". kInvalidArgument, field "tools[i].function...": no such name, or parameters that
// are no JSON object.
base::Status WriteDeepseekTools(PromptWriter& writer, std::span<const ToolSpec> tools);

// The block of calls that ends an assistant's message. `path`: "messages[i].tool_calls".
// kInvalidArgument: a name that is none, or arguments larger than is read.
base::Status WriteDeepseekCalls(PromptWriter& writer, std::span<const ToolCall> calls,
                                const std::string& path);

// The schema of a tool's parameters: as it came, or, where the tool is strict, with nothing
// optional and nothing more in it. kInvalidArgument, field `path`.parameters...: no JSON object, or
// a strict tool with an object whose members are not all named.
base::Result<OrderedJson> ReadToolParameters(const ToolSpec& tool, const std::string& path);

// JSON as Python prints it. kInvalidArgument with that field: not JSON.
base::Result<std::string> AsPythonJson(std::string_view json, const std::string& field);

}  // namespace plumb::text
