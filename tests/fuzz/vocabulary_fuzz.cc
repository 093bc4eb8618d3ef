// tests/fuzz/vocabulary_fuzz.cc
// Any bytes as a vocabulary and a text. The input is lines: model, pre-tokenizer, then tokens (a
// first letter gives the kind), merges (after a line "-") and the text (after another). What is
// built must encode the text to ids in range.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace {

using plumb::text::ControlTokens;
using plumb::text::Tokenizer;
using plumb::text::TokenKind;
using plumb::text::VocabularySpec;

std::string_view TakeLine(std::string_view& rest) {
  const size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

VocabularySpec ReadSpec(std::string_view& rest) {
  VocabularySpec spec;
  spec.model = TakeLine(rest);
  spec.pre = TakeLine(rest);
  while (!rest.empty()) {
    const std::string_view line = TakeLine(rest);
    if (line == "-") break;
    if (line.empty()) continue;
    spec.kinds.push_back(static_cast<TokenKind>(1 + static_cast<uint8_t>(line[0]) % 6));
    spec.scores.push_back(static_cast<float>(static_cast<uint8_t>(line[0]) / 6));
    spec.tokens.emplace_back(line.substr(1));
  }
  while (!rest.empty()) {
    const std::string_view line = TakeLine(rest);
    if (line == "-") break;
    spec.merges.emplace_back(line);
  }
  spec.unk = 0;
  return spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const VocabularySpec spec = ReadSpec(rest);
  const auto tokenizer = Tokenizer::FromVocabulary(spec);
  if (!tokenizer.ok()) {
    CHECK(tokenizer.status().code() != plumb::base::Code::kInternal)
        << tokenizer.status().ToString();
    return 0;
  }
  for (const ControlTokens control : {ControlTokens::kParse, ControlTokens::kAsText}) {
    const auto tokens = (*tokenizer)->Encode(rest, control, true);
    if (!tokens.ok()) continue;
    plumb::text::Detokenizer detokenizer(**tokenizer);
    for (const plumb::text::TokenId token : *tokens) {
      CHECK(plumb::base::Index(token) < (*tokenizer)->size());
      detokenizer.Push(token);
    }
    detokenizer.Finish();
  }
  return 0;
}
