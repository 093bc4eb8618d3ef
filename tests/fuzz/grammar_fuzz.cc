// tests/fuzz/grammar_fuzz.cc
// Any bytes as a grammar (the first says of which kind): it compiles or is refused with a typed
// error, and an answer made of whatever its masks allow never meets a mask that allows nothing.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "text/grammar_rust.h"
#include "text/grammar_testing.h"

namespace {

using plumb::base::Code;
using plumb::base::TokenId;
using plumb::text::GrammarKind;
using plumb::text::GrammarState;
using plumb::text::GrammarVocabulary;
using plumb::text::Tokenizer;
using plumb::text::testing::Allows;

constexpr int kStepsMax = 40;

void Walk(GrammarState& state, const GrammarVocabulary& vocabulary, uint64_t seed) {
  const uint32_t size = vocabulary.size();
  plumb::base::Rng rng(seed);
  std::vector<uint32_t> mask((size + 31) / 32);
  for (int step = 0; step < kStepsMax; ++step) {
    const plumb::base::Status filled = state.FillMask(mask);
    if (!filled.ok()) {
      CHECK(filled.code() == Code::kUnsupported) << filled.ToString();
      return;
    }
    std::vector<TokenId> allowed;
    for (uint32_t id = 0; id < size; ++id)
      if (Allows(mask, TokenId{id})) allowed.push_back(TokenId{id});
    CHECK(!allowed.empty());
    const TokenId token = allowed[rng.Below(allowed.size())];
    const plumb::base::Status accepted = state.Accept(token);
    CHECK(accepted.ok() || accepted.code() == Code::kUnsupported) << accepted.ToString();
    if (!accepted.ok() || vocabulary.IsEnd(token)) return;
  }
  state.Rollback(kStepsMax / 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<Tokenizer> tokenizer = plumb::text::testing::MakeGrammarTokenizer();
  static const auto vocabulary = GrammarVocabulary::Make(*tokenizer).value();
  if (size == 0) return 0;
  plumb::text::GrammarSpec spec{.kind = static_cast<GrammarKind>(data[0] % 6)};
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (spec.kind == GrammarKind::kChoice) {
    if (text.empty()) return 0;
    spec.choices = {text, text + "x"};
  } else {
    spec.source = text;
  }
  const auto grammar = vocabulary->Compile(spec, 5000);
  if (!grammar.ok()) {
    CHECK(grammar.status().code() == Code::kInvalidArgument) << grammar.status().ToString();
    return 0;
  }
  Walk(*(*grammar)->NewState(), *vocabulary, size);
  return 0;
}
