// text/fim_test.cc
// Small vocabularies with the tokens of each family.
#include "text/fim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace plumb::text {
namespace {

using testing::ElementsAre;

// "a" is 0, "b" 1, the names from 2 on.
std::unique_ptr<Tokenizer> Vocabulary(const std::vector<std::string>& controls,
                                      std::optional<uint32_t> bos = std::nullopt) {
  VocabularySpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt-2";
  spec.tokens = {"a", "b"};
  spec.tokens.insert(spec.tokens.end(), controls.begin(), controls.end());
  spec.kinds.assign(spec.tokens.size(), TokenKind::kControl);
  spec.kinds[0] = spec.kinds[1] = TokenKind::kNormal;
  spec.bos = bos;
  if (bos) spec.add_bos = true;
  return Tokenizer::FromVocabulary(spec).value();
}

std::vector<uint32_t> Prompt(const Tokenizer& tokenizer, std::string_view prefix,
                             std::string_view suffix) {
  const auto format = FimFormat::Find(tokenizer);
  EXPECT_TRUE(format);
  if (!format) return {};
  std::vector<uint32_t> ids;
  const std::vector<TokenId> tokens = format->Encode(prefix, suffix).value();
  for (const TokenId token : tokens) ids.push_back(base::Index(token));
  return ids;
}

TEST(FimFormat, IsAbsentWithoutItsTokens) {
  EXPECT_FALSE(FimFormat::Find(*Vocabulary({"<|im_end|>"})));
  EXPECT_FALSE(FimFormat::Find(*Vocabulary({"<|fim_prefix|>", "<|fim_suffix|>"})));
  EXPECT_FALSE(FimFormat::Find(*Vocabulary({"[PREFIX]"})));
}

TEST(FimFormat, PutsTheTextsInTheOrderOfTheFamily) {
  const auto qwen = Vocabulary({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  EXPECT_THAT(Prompt(*qwen, "a", "b"), ElementsAre(2, 0, 3, 1, 4));
  EXPECT_THAT(Prompt(*qwen, "", "b"), ElementsAre(2, 3, 1, 4));
  const auto starcoder = Vocabulary({"<fim_middle>", "<fim_suffix>", "<fim_prefix>"});
  EXPECT_THAT(Prompt(*starcoder, "a", "b"), ElementsAre(4, 0, 3, 1, 2));
  const auto deepseek = Vocabulary({"<｜fim▁hole｜>", "<｜fim▁begin｜>", "<｜fim▁end｜>"});
  EXPECT_THAT(Prompt(*deepseek, "a", "b"), ElementsAre(3, 0, 2, 1, 4));
  const auto codestral = Vocabulary({"<s>", "[PREFIX]", "[SUFFIX]"}, /*bos=*/2);
  EXPECT_THAT(Prompt(*codestral, "a", "b"), ElementsAre(2, 4, 1, 3, 0));
}

TEST(FimFormat, ReadsNoControlTokensInTheTexts) {
  VocabularySpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt-2";
  spec.tokens = {"<", "|", ">", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"};
  spec.kinds.assign(spec.tokens.size(), TokenKind::kNormal);
  spec.kinds[3] = spec.kinds[4] = spec.kinds[5] = TokenKind::kControl;
  const auto tokenizer = Tokenizer::FromVocabulary(spec).value();
  // Letters have no entry here and are dropped.
  EXPECT_THAT(Prompt(*tokenizer, "<|fim_middle|>", ""), ElementsAre(3, 0, 1, 1, 2, 4, 5));
}

TEST(FimFormat, EndsAtItsOwnTokensAndWhereAnotherFileBegins) {
  const auto tokenizer =
      Vocabulary({"<|file_sep|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  EXPECT_THAT(FimFormat::Find(*tokenizer)->ends(),
              ElementsAre(TokenId{2}, TokenId{3}, TokenId{4}, TokenId{5}));
}

TEST(FimFormat, RefusesWhatIsNotText) {
  const auto tokenizer = Vocabulary({"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"});
  const auto format = FimFormat::Find(*tokenizer);
  ASSERT_TRUE(format);
  EXPECT_EQ(format->Encode("a", "\xff").status().code(), base::Code::kInvalidArgument);
}

}  // namespace
}  // namespace plumb::text
