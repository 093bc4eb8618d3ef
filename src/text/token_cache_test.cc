// text/token_cache_test.cc
// That what is remembered is never seen in the ids, for every kind of vocabulary; and the bounds.
// Real vocabularies: tests/golden/tokenizer.
#include "text/token_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/random.h"

namespace plumb::text {
namespace {

constexpr base::Hash256 kAlice{.bytes = {1}};
constexpr base::Hash256 kBob{.bytes = {2}};
constexpr uint64_t kPlenty = 1u << 20;

VocabularySpec ByteLevelSpec() {
  VocabularySpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt-2";
  spec.tokens = {"a", "b", "c", "ab", "abc", "Ġ", "Ġa", "<|im|>", "<|im", "<tool>", "Ċ", "<", "|"};
  spec.kinds.assign(spec.tokens.size(), TokenKind::kNormal);
  spec.kinds[7] = TokenKind::kControl;
  spec.kinds[8] = TokenKind::kControl;  // a prefix of the one before
  spec.kinds[9] = TokenKind::kUserDefined;
  spec.merges = {"a b", "ab c", "Ġ a"};
  return spec;
}

// A text's first word has a space before it, and so has one after a control token: the same text
// has other ids at other places.
VocabularySpec SentencePieceSpec() {
  VocabularySpec spec;
  spec.model = "llama";
  spec.tokens = {"<unk>", "<|im|>", "<tool>", "▁", "a", "b", "ab", "▁a", "▁ab", "c", "<|im"};
  spec.scores = {0, 0, 0, -1, -2, -3, -5, -4, -6, -7, 0};
  spec.kinds.assign(spec.tokens.size(), TokenKind::kNormal);
  spec.kinds[0] = TokenKind::kUnknown;
  spec.kinds[1] = spec.kinds[10] = TokenKind::kControl;
  spec.kinds[2] = TokenKind::kUserDefined;
  spec.add_space_prefix = true;
  spec.unk = 0;
  return spec;
}

constexpr std::string_view kTokenizerJson = R"({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [{"id": 4, "content": "<|im|>", "single_word": false, "lstrip": true,
                    "rstrip": true, "normalized": false, "special": true}],
  "normalizer": null,
  "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
                    "split": true},
  "post_processor": null,
  "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true},
  "model": {"type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1, "b": 2, "▁": 3,
            "▁a": 5}, "merges": ["▁ a"]}})";

struct Case {
  const char* name;
  std::unique_ptr<Tokenizer> tokenizer;
};
std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back({"gpt2", Tokenizer::FromVocabulary(ByteLevelSpec()).value()});
  cases.push_back({"llama", Tokenizer::FromVocabulary(SentencePieceSpec()).value()});
  cases.push_back({"json", Tokenizer::FromJson(kTokenizerJson).value()});
  return cases;
}

// Of pieces that meet in every order, control tokens and what looks like them among them; few and
// long enough that parts come again.
std::string RandomText(base::Rng& random) {
  constexpr std::string_view kPieces[] = {
      "<|im|>", "<|im",  "<tool>", "|>",     " ",
      "\n",     "a",     "ab c",   "é",      "abcabcabcabcabcabcabcabcabcabcabcabcabc",
      "abc a ", "<<|im", "",       "   abc", "a b c a b c a b c a b c a b c a b c a b c a b"};
  std::string text;
  for (uint64_t i = random.Below(12); i > 0; --i) text += kPieces[random.Below(std::size(kPieces))];
  return text;
}

TEST(TokenCache, GivesWhatTheTokenizerGivesWhateverItRemembers) {
  for (const Case& tested : Cases()) {
    TokenCache large(*tested.tokenizer, kPlenty);
    TokenCache small(*tested.tokenizer, 2048);  // forgets most of it again
    base::Rng random(20261130);
    for (int i = 0; i < 4000; ++i) {
      const std::string text = RandomText(random);
      const auto control = static_cast<ControlTokens>(random.Below(3));
      const auto expected = tested.tokenizer->Encode(text, control, /*add_special=*/false);
      ASSERT_TRUE(expected.ok()) << tested.name << ": " << text;
      for (TokenCache* cache : {&large, &small}) {
        const auto got = cache->Encode(text, control, random.Below(2) == 0 ? kAlice : kBob);
        ASSERT_TRUE(got.ok()) << tested.name << ": " << text;
        ASSERT_EQ(*got, *expected) << tested.name << ": " << text;
      }
    }
    EXPECT_GT(large.stats().found_bytes, 1000u) << tested.name;
    EXPECT_LE(small.stats().held_bytes, 2048u) << tested.name;
  }
}

TEST(TokenCache, RefusesWhatTheTokenizerRefuses) {
  const auto tokenizer = Tokenizer::FromVocabulary(ByteLevelSpec()).value();
  TokenCache cache(*tokenizer, kPlenty);
  for (const std::string& text :
       {std::string("ab\xFFzz"), std::string(Tokenizer::kTextBytesMax + 1, 'a')}) {
    const auto expected = tokenizer->Encode(text, ControlTokens::kParse, false);
    const auto got = cache.Encode(text, ControlTokens::kParse, kAlice);
    ASSERT_FALSE(expected.ok());
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.status().ToString(), expected.status().ToString());
  }
}

TEST(TokenCache, EncodesOnlyWhatIsNew) {
  const auto tokenizer = Tokenizer::FromVocabulary(ByteLevelSpec()).value();
  TokenCache cache(*tokenizer, kPlenty);
  const std::string first(100, 'a'), second(50, 'b');
  ASSERT_TRUE(cache.Encode("<|im|>" + first, ControlTokens::kParse, kAlice).ok());
  EXPECT_EQ(cache.stats().encoded_bytes, 100u);
  ASSERT_TRUE(
      cache.Encode("<|im|>" + first + "<|im|>" + second, ControlTokens::kParse, kAlice).ok());
  EXPECT_EQ(cache.stats().encoded_bytes, 150u);
  EXPECT_EQ(cache.stats().found_bytes, 100u);
}

TEST(TokenCache, FindsNothingOfAnotherCaller) {
  const auto tokenizer = Tokenizer::FromVocabulary(ByteLevelSpec()).value();
  TokenCache cache(*tokenizer, kPlenty);
  const std::string text(100, 'a');
  ASSERT_TRUE(cache.Encode(text, ControlTokens::kParse, kAlice).ok());
  ASSERT_TRUE(cache.Encode(text, ControlTokens::kParse, kBob).ok());
  EXPECT_EQ(cache.stats().found_bytes, 0u);
  ASSERT_TRUE(cache.Encode(text, ControlTokens::kParse, kAlice).ok());
  EXPECT_EQ(cache.stats().found_bytes, 100u);
}

TEST(TokenCache, ForgetsFirstWhatWasNotAskedForLongest) {
  const auto tokenizer = Tokenizer::FromVocabulary(ByteLevelSpec()).value();
  // Each text has 100 ids: 656 bytes with what it takes to find them.
  TokenCache cache(*tokenizer, 4 * 656);
  const auto found_bytes_of = [&](char c) {
    const uint64_t before = cache.stats().found_bytes;
    EXPECT_TRUE(cache.Encode(std::string(100, c), ControlTokens::kParse, kAlice).ok());
    return cache.stats().found_bytes - before;
  };
  for (const char c : {'a', 'b', 'c', '<'}) EXPECT_EQ(found_bytes_of(c), 0u);
  EXPECT_EQ(cache.stats().entries, 4u);
  EXPECT_EQ(found_bytes_of('a'), 100u);
  EXPECT_EQ(found_bytes_of('|'), 0u);  // takes the place of 'b'
  EXPECT_EQ(cache.stats().entries, 4u);
  EXPECT_EQ(found_bytes_of('a'), 100u);
  EXPECT_EQ(found_bytes_of('c'), 100u);
  EXPECT_EQ(found_bytes_of('b'), 0u);
}

TEST(TokenCache, RemembersNothingWithoutRoom) {
  const auto tokenizer = Tokenizer::FromVocabulary(ByteLevelSpec()).value();
  TokenCache none(*tokenizer, 0);
  TokenCache tight(*tokenizer, 1000);  // a quarter of it holds no text
  for (TokenCache* cache : {&none, &tight}) {
    for (int i = 0; i < 2; ++i)
      ASSERT_TRUE(cache->Encode(std::string(200, 'a'), ControlTokens::kParse, kAlice).ok());
    EXPECT_EQ(cache->stats().entries, 0u);
    EXPECT_EQ(cache->stats().held_bytes, 0u);
    EXPECT_EQ(cache->stats().encoded_bytes, 400u);
  }
}

TEST(Tokenizer, CutsATextWhereTokensAreSpelled) {
  const auto tokenizer = Tokenizer::FromVocabulary(ByteLevelSpec()).value();
  const auto parts = tokenizer->Cut("ab<|im|>c<|im <tool>", ControlTokens::kParse);
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 6u);
  EXPECT_EQ((*parts)[0].text, "ab");
  EXPECT_TRUE((*parts)[0].opens);
  EXPECT_EQ((*parts)[1].token, TokenId{7});
  EXPECT_EQ((*parts)[2].text, "c");
  EXPECT_EQ((*parts)[3].token, TokenId{8});
  EXPECT_EQ((*parts)[4].text, " ");
  EXPECT_EQ((*parts)[5].token, TokenId{9});
  EXPECT_EQ(tokenizer->Cut("ab<|im|>", ControlTokens::kNone)->size(), 1u);
  EXPECT_TRUE(tokenizer->Cut("", ControlTokens::kParse)->empty());
}

}  // namespace
}  // namespace plumb::text
