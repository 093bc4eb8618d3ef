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

Status ApplyGrammar(const text::GrammarSpec& spec, const char* field,
                    text::GrammarCompiler* grammars, engine::Request& out) {
  if (out.sampling.ignore_end) {
    return InvalidArgument(
        "ignore_eos", std::string("ignore_eos is not taken together with ") + field +
                          ": the answer ends where its grammar does; leave one of them out");
  }
  if (grammars == nullptr) {
    return base::Unsupported("this server enforces no grammars").WithField(field);
  }
  auto grammar = grammars->Compile(spec);
  if (!grammar.ok()) return std::move(grammar).status().WithField(field);
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
  if (prompt.grammar) {
    if (request.grammar) {
      return InvalidArgument("response_format",
                             "response_format is not taken together with a "
                             "tool_choice that asks for a call");
    }
    return ApplyGrammar(*prompt.grammar, "tool_choice", grammars, out);
  }
  if (!request.grammar) return base::OkStatus();
  if (prompt.calls) {
    return InvalidArgument("response_format",
                           "response_format is not taken together with tools: the answer could "
                           "not call them; leave one out, or set tool_choice to \"none\"");
  }
  text::GrammarSpec spec = *request.grammar;
  if (spec.begin.empty()) spec.begin = prompt.content_after;
  return ApplyGrammar(spec, "response_format", grammars, out);
}

bool EndedByModel(const engine::Finish& finish, const std::vector<std::string>& prompt_stops) {
  if (finish.reason != engine::FinishReason::kStop) return false;
  return !finish.stop || std::ranges::find(prompt_stops, *finish.stop) != prompt_stops.end();
}

}  // namespace plumb::api
