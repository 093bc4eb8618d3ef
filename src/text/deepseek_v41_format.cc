// text/deepseek_v41_format.cc
// Segments to ids, and the grammar of calls; behind text/deepseek_v41_format.h.
#include "text/deepseek_v41_format.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "text/deepseek_v41_parser.h"
#include "text/deepseek_v41_prompt.h"
#include "text/deepseek_v41_tools.h"
#include "text/tool_grammar.h"

namespace plumb::text {
namespace {

// Every spelling of the beginning of calls that the parser reads.
constexpr std::string_view kCallsBegins[] = {kDeepseekCalls, "<｜DSML｜calls>",
                                             "<｜DSML｜ tool_calls>", "<｜DSML｜tool_calls>"};

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

base::Result<ChatPrompt> DeepseekV41Format::Encode(const ChatInput& input, uint32_t tokens_max,
                                                   const TokenScope& scope) const {
  ASSIGN_OR_RETURN(const DeepseekV41Prompt rendered, RenderDeepseekV41(input));
  ChatPrompt prompt;
  for (const PromptSegment& segment : rendered.segments) prompt.text += segment.text;
  RETURN_IF_ERROR(CheckPromptSize(prompt.text.size(), tokenizer_, tokens_max));
  ASSIGN_OR_RETURN(prompt.tokens, specials_.Encode(tokenizer_, rendered.segments, scope));
  prompt.start = rendered.start;
  prompt.continues = rendered.continues;
  prompt.calls = rendered.calls;
  if (prompt.start == AnswerStart::kReasoning) {
    prompt.content_after = kDeepseekThinkEnd;
    prompt.reasoning_ends.emplace_back(kDeepseekThinkEnd);
    for (const std::string_view begin : kCallsBegins)
      if (prompt.calls) prompt.reasoning_ends.emplace_back(begin);
  }
  ASSIGN_OR_RETURN(prompt.grammar, ToolGrammar(CallSyntax::kDsml, input, prompt.start));
  prompt.one_call = prompt.calls && !input.parallel_tool_calls;
  prompt.must_call = prompt.calls && MustCall(input.tool_choice);
  // Without a grammar, the first call's end is the answer's. The parser holds to one call where
  // that end is left out or spelled otherwise.
  if (prompt.one_call && !prompt.grammar) prompt.stops.emplace_back(kDeepseekInvokeEnd);
  return prompt;
}

std::unique_ptr<AnswerParser> DeepseekV41Format::NewParser(const ChatPrompt& prompt) const {
  return std::make_unique<DeepseekV41Parser>(DeepseekV41Answer{.start = prompt.start,
                                                               .continues = prompt.continues,
                                                               .calls = prompt.calls,
                                                               .one_call = prompt.one_call,
                                                               .must_call = prompt.must_call});
}

}  // namespace plumb::text
