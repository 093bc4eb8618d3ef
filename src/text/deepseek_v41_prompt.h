// text/deepseek_v41_prompt.h
// A conversation in DeepSeek-V4.1's encoding, as segments: no tokenizer here. The model has no
// template of its own; these rules are deepseek-recipe 0.2.0's, which differ from other programs'
// in corners that docs/deepseek_v41_chat.md lists.
// Read next: text/deepseek_v41_tools.h, text/deepseek_v41_format.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/chat_format.h"
#include "text/chat_input.h"
#include "text/prompt_segments.h"

namespace plumb::text {

// Every name that a segment of kind kTemplate may hold as a special token.
constexpr std::string_view kDeepseekV41Specials[] = {
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜System｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "<｜latest_reminder｜>",
    "｜DSML｜",
    "<｜deepseek_image｜>",
    "<｜action｜>",
    "<｜query｜>",
    "<｜authority｜>",
    "<｜domain｜>",
    "<｜title｜>",
    "<｜read_url｜>",
};
constexpr std::string_view kDeepseekThinkEnd = "</think>";

// Level of effort when none is given.
constexpr uint32_t kDeepseekEffortDefault = 75;

struct DeepseekV41Prompt {
  std::vector<PromptSegment> segments;
  AnswerStart start = AnswerStart::kContent;
  bool continues = false;  // ChatPrompt
  bool calls = false;      // tools are declared
};

// kInvalidArgument with the path of what cannot be said to this model: an unknown role, a result
// without its call or a call without its result, a `prefix` that is not last or among calls, an
// effort or task that there is not, tools or a schema that are not JSON, a tool_choice that needs
// another mode.
base::Result<DeepseekV41Prompt> RenderDeepseekV41(const ChatInput& input);

// Of "low", "high", ..., or "1" to "100"; nothing: no such effort.
std::optional<uint32_t> DeepseekEffort(std::string_view effort);

}  // namespace plumb::text
