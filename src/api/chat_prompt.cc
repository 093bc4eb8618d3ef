// api/chat_prompt.cc
// See chat_prompt.h.
#include "api/chat_prompt.h"

#include <algorithm>
#include <string>
#include <utility>

namespace plumb::api {

using base::InvalidArgument;
using base::Status;

namespace {

// Where a grammar comes from: the field that asks for one, and the field that it is made of.
struct Origin {
  const char* asks;
  const char* says;
};

Status ApplyGrammar(const text::GrammarSpec& spec, Origin origin, text::GrammarCompiler* grammars,
                    engine::Request& out) {
  if (out.sampling.ignore_end) {
    return InvalidArgument("ignore_eos",
                           std::string("ignore_eos is not taken together with ") + origin.asks +
                               ": the answer ends where its grammar does; leave one of them out");
  }
  if (grammars == nullptr) {
    return base::Unsupported("this server enforces no grammars").WithField(origin.says);
  }
  auto grammar = grammars->Compile(spec);
  if (!grammar.ok()) return std::move(grammar).status().WithField(origin.says);
  out.grammar = *std::move(grammar);
  return base::OkStatus();
}

// Of a prompt whose answer begins with reasoning.
Status ApplyBudget(const GenerationRequest& request, const text::ChatPrompt& prompt,
                   text::GrammarCompiler* grammars, engine::Request& out) {
  constexpr const char* kField = "thinking";
  if (out.sampling.ignore_end) {
    return InvalidArgument("ignore_eos",
                           "ignore_eos is not taken together with a budget for thinking; leave one "
                           "of them out");
  }
  if (grammars == nullptr)
    return base::Unsupported("this server enforces no budgets").WithField(kField);
  auto grammar = grammars->WithBudget(*request.input.reasoning_tokens_max, prompt.reasoning_ends,
                                      std::move(out.grammar));
  if (!grammar.ok()) return std::move(grammar).status().WithField(kField);
  out.grammar = *std::move(grammar);
  return base::OkStatus();
}

}  // namespace

Status ApplyPrompt(const GenerationRequest& request, text::ChatPrompt prompt,
                   text::GrammarCompiler* grammars, engine::Request& out) {
  out.sampling = request.sampling;
  for (std::string& stop : prompt.stops) out.sampling.stop.push_back(std::move(stop));
  if (out.sampling.stop.size() > engine::kStopStringsMax) {
    return InvalidArgument("stop",
                           "one stop string fewer is taken with parallel_tool_calls: false");
  }
  out.prompt = std::move(prompt.tokens);
  if (request.grammar && prompt.calls) {
    return InvalidArgument("response_format",
                           "response_format is not taken together with tools: the answer could "
                           "not call them; leave one out, or set tool_choice to \"none\"");
  }
  if (prompt.grammar) {
    const bool strict = request.input.tool_choice == text::ToolChoice::kAuto;
    const bool one = strict && !request.input.parallel_tool_calls;
    const Origin origin{.asks = one      ? "parallel_tool_calls: false"
                                : strict ? "a strict tool"
                                         : "tool_choice",
                        .says = "tools"};
    RETURN_IF_ERROR(ApplyGrammar(*prompt.grammar, origin, grammars, out));
  } else if (request.grammar) {
    text::GrammarSpec spec = *request.grammar;
    if (spec.begin.empty()) spec.begin = prompt.content_after;
    const Origin origin{.asks = "response_format", .says = "response_format"};
    RETURN_IF_ERROR(ApplyGrammar(spec, origin, grammars, out));
  }
  const bool bounded =
      request.input.reasoning_tokens_max && prompt.start == text::AnswerStart::kReasoning;
  return bounded ? ApplyBudget(request, prompt, grammars, out) : base::OkStatus();
}

bool EndedByModel(const engine::Finish& finish, const std::vector<std::string>& prompt_stops) {
  if (finish.reason != engine::FinishReason::kStop) return false;
  return !finish.stop || std::ranges::find(prompt_stops, *finish.stop) != prompt_stops.end();
}

}  // namespace plumb::api
