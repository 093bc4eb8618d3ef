// tests/golden/tokenizer/smollm2_test.cc
// SmolLM2's tokenizer against an independent reference (make_smollm2.py), and what its vocabulary
// says of control and end tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "golden_files.h"

namespace plumb::golden {
namespace {

using testing::ElementsAre;
using text::ControlTokens;
using text::TokenId;

TEST(SmolLm2, IdsEqualTheReference) {
  auto tokenizer = LoadTokenizer(smollm2_file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  auto content = base::ReadFile(source_folder + "/smollm2.json", 1u << 20);
  ASSERT_TRUE(content.ok()) << content.status().ToString();
  const auto cases = nlohmann::json::parse(*content);
  ASSERT_GE(cases.size(), 30u);
  for (const auto& item : cases) {
    const std::string text = item["text"];
    for (const bool parse : {false, true}) {
      const auto control = parse ? ControlTokens::kParse : ControlTokens::kAsText;
      auto ids = (*tokenizer)->Encode(text, control, false);
      ASSERT_TRUE(ids.ok()) << ids.status().ToString();
      EXPECT_EQ(Ids(*ids), item[parse ? "parsed" : "as_text"].get<std::vector<uint32_t>>())
          << testing::PrintToString(text) << (parse ? " parsed" : " as text");
    }
  }
}

TEST(SmolLm2, KnowsItsControlAndEndTokens) {
  auto loaded = LoadTokenizer(smollm2_file);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  const text::Tokenizer& tokenizer = **loaded;
  EXPECT_EQ(tokenizer.size(), 49152u);
  EXPECT_EQ(tokenizer.bos(), TokenId{1});
  EXPECT_EQ(tokenizer.eos(), TokenId{2});
  EXPECT_THAT(tokenizer.end_tokens(), ElementsAre(TokenId{0}, TokenId{2}));
  EXPECT_EQ(tokenizer.TokenName(TokenId{2}), "<|im_end|>");
  EXPECT_TRUE(tokenizer.IsControl(TokenId{2}));
  EXPECT_EQ(tokenizer.TokenBytes(TokenId{2}), "");
}

// Vocabularies whose chat models end an answer by another token than their EOS.
TEST(EndTokens, AreThoseThatEndAnAnswer) {
  const struct {
    const char* name;
    std::vector<std::string> ends;
  } cases[] = {
      {"qwen2", {"<|endoftext|>", "<|im_end|>"}},
      {"llama-bpe", {"<|end_of_text|>", "<|eot_id|>"}},
      {"llama-spm", {"</s>"}},
      {"phi-3", {"<|endoftext|>", "<|end|>"}},
      {"gemma-4", {"<eos>", "<|tool_response>", "<turn|>"}},
      {"command-r", {"<|END_OF_TURN_TOKEN|>"}},
      {"deepseek-llm", {"<｜end▁of▁sentence｜>"}},
      {"deepseek-coder", {"<｜end▁of▁sentence｜>", "<|EOT|>"}},
      {"gpt-2", {"<|endoftext|>"}},
  };
  for (const auto& item : cases) {
    auto tokenizer = LoadTokenizer(VocabularyFile(item.name));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    std::vector<std::string> names;
    for (const TokenId token : (*tokenizer)->end_tokens()) {
      names.emplace_back((*tokenizer)->TokenName(token));
      EXPECT_TRUE((*tokenizer)->IsControl(token)) << names.back();
    }
    EXPECT_THAT(names, testing::UnorderedElementsAreArray(item.ends)) << item.name;
  }
}

// A user's text never becomes a control token unless the caller asks for it.
TEST(ControlTokens, AreNeverMadeFromPlainText) {
  for (const std::string name : kVocabularies) {
    auto tokenizer = LoadTokenizer(VocabularyFile(name));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    for (uint32_t id = 0; id < (*tokenizer)->size(); ++id) {
      if (!(*tokenizer)->IsControl(TokenId{id})) continue;
      const std::string control((*tokenizer)->TokenName(TokenId{id}));
      auto plain = (*tokenizer)->Encode(control, ControlTokens::kAsText, false);
      ASSERT_TRUE(plain.ok()) << plain.status().ToString();
      for (const TokenId token : *plain) {
        EXPECT_FALSE((*tokenizer)->IsControl(token)) << name << ": " << control;
      }
      auto parsed = (*tokenizer)->Encode(control, ControlTokens::kParse, false);
      ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
      EXPECT_THAT(*parsed, ElementsAre(TokenId{id})) << name << ": " << control;
    }
  }
}

}  // namespace
}  // namespace plumb::golden
