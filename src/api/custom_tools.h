// api/custom_tools.h
// OpenAI's custom tools, whose input is a text and no JSON, for models that know functions only:
// such a tool is told as a function of one argument, {"input": "..."}. Shared by Chat Completions
// and the Responses API. Read next: api/custom_input.h (back from a call's arguments to the input).
#pragma once

#include <string>
#include <string_view>

#include "api/json.h"
#include "base/result.h"

namespace plumb::api {

// The schema of that argument.
constexpr std::string_view kCustomParameters =
    R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"],)"
    R"("additionalProperties":false})";

// The arguments that an input stands for.
std::string CustomArguments(const std::string& input);

// The member "format" of such a tool: {"type": "text"}, or {"type": "grammar", "syntax",
// "definition"}, where the two may stand in a member `inner` (empty: they stand beside the type).
// Gives what is to be said of it behind the tool's description; nothing of a text.
// kInvalidArgument with the path of the member at fault.
base::Result<std::string> ReadCustomFormat(const JsonValue& value, const std::string& path,
                                           std::string_view inner);

}  // namespace plumb::api
