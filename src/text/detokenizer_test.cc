// text/detokenizer_test.cc
// Characters over token boundaries: nothing is shown before it is whole, nothing is taken back, and
// any way of cutting bytes into tokens gives the same text.
#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "text/utf8.h"

namespace plumb::text {
namespace {

// Entries are single bytes, then a control token.
std::unique_ptr<Tokenizer> ByteTokenizer() {
  VocabularySpec spec;
  spec.model = "llama";
  constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    spec.tokens.push_back(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">");
    spec.kinds.push_back(TokenKind::kByte);
  }
  spec.tokens.push_back("</s>");
  spec.kinds.push_back(TokenKind::kControl);
  spec.scores.assign(spec.tokens.size(), 0.0f);
  auto tokenizer = Tokenizer::FromVocabulary(spec);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  return tokenizer.ok() ? std::move(*tokenizer) : nullptr;
}

TEST(Detokenizer, ShowsACharacterWithItsLastToken) {
  const auto tokenizer = ByteTokenizer();
  ASSERT_TRUE(tokenizer);
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.Push(TokenId{'a'}), "a");
  EXPECT_EQ(detokenizer.Push(TokenId{0xF0}), "");
  EXPECT_EQ(detokenizer.Push(TokenId{0x9F}), "");
  EXPECT_EQ(detokenizer.Push(TokenId{256}), "") << "a control token has no bytes";
  EXPECT_EQ(detokenizer.Push(TokenId{0xA6}), "");
  EXPECT_EQ(detokenizer.Push(TokenId{0x99}), "🦙");
  EXPECT_EQ(detokenizer.Finish(), "");
}

TEST(Detokenizer, ReplacesWhatCanNoLongerBecomeACharacter) {
  const auto tokenizer = ByteTokenizer();
  ASSERT_TRUE(tokenizer);
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.Push(TokenId{0xED}), "");
  EXPECT_EQ(detokenizer.Push(TokenId{0xA0}), "\uFFFD\uFFFD") << "a surrogate: two invalid parts";
  EXPECT_EQ(detokenizer.Push(TokenId{0xE2}), "");
  EXPECT_EQ(detokenizer.Push(TokenId{0x82}), "");
  EXPECT_EQ(detokenizer.Push(TokenId{'z'}), "\uFFFDz");
  EXPECT_EQ(detokenizer.Push(TokenId{0xE2}), "");
  EXPECT_EQ(detokenizer.Push(TokenId{0x82}), "");
  EXPECT_EQ(detokenizer.Finish(), "\uFFFD") << "one part that stayed unfinished";
  EXPECT_EQ(detokenizer.Finish(), "");
}

TEST(Detokenizer, GivesWhatDecodingAllBytesAtOnceGives) {
  const auto tokenizer = ByteTokenizer();
  ASSERT_TRUE(tokenizer);
  const uint64_t seed = 20261201;
  SCOPED_TRACE(seed);
  base::Rng rng(seed);
  const std::string alphabet = "a\x80\xBF\xC2\xE0\xA0\xED\xF0\x90\xF4\x8F\xFF\xE1";
  for (int round = 0; round < 5000; ++round) {
    std::string bytes, text;
    Detokenizer detokenizer(*tokenizer);
    for (uint64_t n = rng.Below(20); n > 0; --n) {
      bytes += alphabet[rng.Below(alphabet.size())];
      text += detokenizer.Push(TokenId{static_cast<uint8_t>(bytes.back())});
    }
    text += detokenizer.Finish();
    std::string rest = bytes;
    std::string expected = TakeUtf8(rest);
    if (!rest.empty()) expected += kReplacement;
    ASSERT_EQ(text, expected) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace plumb::text
