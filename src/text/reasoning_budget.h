// text/reasoning_budget.h
// Reasoning held to a number of tokens: when it has as many, its end is the only thing that may be
// written. As a grammar, so that it is a function of the tokens alone, exact under any batch, and
// drafts are held to it too. Internal to text: others ask text/grammar_compiler.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "text/grammar.h"
#include "text/grammar_rust.h"

namespace plumb::text {

struct ReasoningBudget {
  uint32_t tokens_max = 0;        // of reasoning, as text/reasoning_meter.h counts them
  std::vector<std::string> ends;  // ChatPrompt::reasoning_ends; not empty
  std::vector<TokenId> close;     // how the first of them is written; not empty
};

// For an answer that begins with reasoning. `inner`: what holds besides, null for nothing; where it
// does not let the reasoning be closed, it goes first.
std::shared_ptr<const Grammar> MakeBudgeted(std::shared_ptr<const GrammarVocabulary> vocabulary,
                                            ReasoningBudget budget,
                                            std::shared_ptr<const Grammar> inner);

}  // namespace plumb::text
