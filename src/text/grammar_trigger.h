// text/grammar_trigger.h
// A grammar that holds in parts of an answer: free text until `begin` (a text or a control token),
// then the grammar, and with `end` free text again. The texts are found over the bytes of tokens,
// so it does not matter how the model cuts them; only a token that would run over the end of
// `begin` is not allowed, since the grammar must see every byte after it.
// Internal to text. Read next: text/grammar_compiler.h.
#pragma once

#include <memory>

#include "base/result.h"
#include "text/grammar.h"
#include "text/grammar_rust.h"

namespace plumb::text {

// `inner` is what holds between the triggers of `spec`, its `end` included. kInvalidArgument, field
// "grammar": `begin` is a token that ends the answer.
base::Result<std::shared_ptr<const Grammar>> MakeTriggered(
    std::shared_ptr<const GrammarVocabulary> vocabulary, const GrammarSpec& spec,
    std::shared_ptr<const Grammar> inner);

}  // namespace plumb::text
