// text/deepseek_v41_format.cc
// Segments to ids, and the grammar of a call that must come; behind text/deepseek_v41_format.h.
#include "text/deepseek_v41_format.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "text/deepseek_v41_parser.h"
#include "text/deepseek_v41_prompt.h"
#include "text/deepseek_v41_tools.h"

namespace plumb::text {
namespace {

// An answer that begins within a block of calls, of a tool that there is. Names are letters,
// digits, '_' and '-' by now, so they need no escapes.
GrammarSpec CallGrammar(const ChatInput& input) {
  std::string names;
  for (const ToolSpec& tool : input.tools) {
    if (input.tool_choice == ToolChoice::kNamed && tool.name != input.tool_name) continue;
    names += (names.empty() ? "" : "|") + tool.name;
  }
  GrammarSpec spec{.kind = GrammarKind::kRegex};
  spec.source = fmt::format("<｜DSML｜ invoke name=\"({})\">\\n(.|\\n)*", names);
  return spec;
}

}  // namespace

base::Result<std::unique_ptr<DeepseekV41Format>> DeepseekV41Format::Create(
    const Tokenizer& tokenizer) {
  SpecialTokens specials(tokenizer, kDeepseekV41Specials);
  for (const char* name : {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>",
                           "<｜Assistant｜>", "<think>", "</think>", "｜DSML｜"}) {
    if (!specials.Has(name)) {
      return base::Unsupported(fmt::format("this tokenizer has no {}, which chats need", name));
    }
  }
  for (const std::string_view name : {kDeepseekThinkEnd, std::string_view("｜DSML｜")}) {
    if (tokenizer.ControlSpelling(name) == name.size()) {
      return base::Unsupported(
          fmt::format("this tokenizer has {} as a control token; answers would not show it", name));
    }
  }
  return std::unique_ptr<DeepseekV41Format>(new DeepseekV41Format(tokenizer, std::move(specials)));
}

base::Result<ChatPrompt> DeepseekV41Format::Encode(const ChatInput& input,
                                                   uint32_t tokens_max) const {
  ASSIGN_OR_RETURN(const DeepseekV41Prompt rendered, RenderDeepseekV41(input));
  ChatPrompt prompt;
  for (const PromptSegment& segment : rendered.segments) prompt.text += segment.text;
  RETURN_IF_ERROR(CheckPromptSize(prompt.text.size(), tokenizer_, tokens_max));
  ASSIGN_OR_RETURN(prompt.tokens, specials_.Encode(tokenizer_, rendered.segments));
  prompt.start = rendered.start;
  prompt.continues = rendered.continues;
  prompt.calls = rendered.calls;
  if (prompt.start == AnswerStart::kReasoning) prompt.content_after = kDeepseekThinkEnd;
  if (prompt.start == AnswerStart::kCalls) prompt.grammar = CallGrammar(input);
  if (prompt.calls && !input.parallel_tool_calls) prompt.stops.emplace_back(kDeepseekInvokeEnd);
  return prompt;
}

std::unique_ptr<AnswerParser> DeepseekV41Format::NewParser(const ChatPrompt& prompt) const {
  return std::make_unique<DeepseekV41Parser>(prompt.start, prompt.continues, prompt.calls);
}

}  // namespace plumb::text
