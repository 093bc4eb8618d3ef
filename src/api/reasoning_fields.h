// api/reasoning_fields.h
// What a request says of reasoning, into text::ChatInput. Only for models whose chat format reasons
// (text::ChatAbilities); whoever reads the rest of a request refuses it for others.
#pragma once

#include <string>

#include "api/json.h"
#include "base/result.h"
#include "text/chat_input.h"

namespace plumb::api {

// All: kInvalidArgument with the path of the member at fault.

// "none", "minimal", "low", "medium", "high", "xhigh", "max", or a number from 1 to 100.
base::Result<std::string> ReadEffort(const JsonValue& value, const std::string& path);
// {"type": "enabled" | "disabled", "budget_tokens": N} into `thinking` and `reasoning_tokens_max`;
// a budget, of 1 token at least, is for "enabled" alone.
base::Status ReadThinking(const JsonValue& value, const std::string& path, text::ChatInput& input);

}  // namespace plumb::api
