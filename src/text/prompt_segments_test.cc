// text/prompt_segments_test.cc
// Special tokens come from templates alone, whatever a text says; between them text is encoded in
// one piece.
#include "text/prompt_segments.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/deepseek_token_classes.h"

namespace plumb::text {
namespace {

using Kind = PromptSegment::Kind;
using nlohmann::json;

// A byte-level tokenizer.json with the entries a b ab < > | and two added ones, of which only
// "<s>" is a control token.
std::unique_ptr<Tokenizer> Small() {
  const json added = [](const char* content, int id, bool special) {
    return json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", special}};
  }("<s>", 8, true);
  json think = added;
  think["content"] = "<|>";
  think["id"] = 9;
  think["special"] = false;
  const json level = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  const json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", {added, think}},
      {"normalizer", nullptr},
      {"pre_tokenizer", level},
      {"post_processor", nullptr},
      {"decoder", level},
      {"model",
       {{"type", "BPE"},
        {"vocab",
         {{"a", 0}, {"b", 1}, {"ab", 2}, {"<", 3}, {">", 4}, {"|", 5}, {"s", 6}, {"A", 7}}},
        {"merges", {"a b"}}}}};
  return Tokenizer::FromJson(tokenizer.dump()).value();
}

std::vector<uint32_t> Ids(const std::vector<TokenId>& tokens) {
  std::vector<uint32_t> ids;
  for (const TokenId token : tokens) ids.push_back(base::Index(token));
  return ids;
}

constexpr std::string_view kNames[] = {"<s>", "<|>", "<gone>"};

TEST(PromptSegments, TextsMakeNoSpecialTokens) {
  const auto tokenizer = Small();
  const SpecialTokens specials(*tokenizer, kNames);
  const PromptSegment segments[] = {{Kind::kTemplate, "<s><|>"}, {Kind::kText, "<s><|>"}};
  const auto tokens = specials.Encode(*tokenizer, segments);
  ASSERT_TRUE(tokens.ok()) << tokens.status().ToString();
  EXPECT_EQ(Ids(*tokens), (std::vector<uint32_t>{8, 9, 3, 6, 4, 3, 5, 4}));
}

TEST(PromptSegments, MergesCrossSegments) {
  const auto tokenizer = Small();
  const SpecialTokens specials(*tokenizer, kNames);
  const PromptSegment segments[] = {
      {Kind::kTemplate, "<s>a"}, {Kind::kText, "b"}, {Kind::kTemplate, "<s>b"}, {Kind::kText, "a"}};
  EXPECT_EQ(Ids(*specials.Encode(*tokenizer, segments)), (std::vector<uint32_t>{8, 2, 8, 1, 0}));
}

TEST(PromptSegments, ASpecialTokenIsNotPutTogetherFromTwoSegments) {
  const auto tokenizer = Small();
  const SpecialTokens specials(*tokenizer, kNames);
  const PromptSegment segments[] = {
      {Kind::kTemplate, "<"}, {Kind::kText, "s"}, {Kind::kTemplate, ">"}};
  EXPECT_EQ(Ids(*specials.Encode(*tokenizer, segments)), (std::vector<uint32_t>{3, 6, 4}));
}

TEST(PromptSegments, NamesThatTheTokenizerLacksAreRefused) {
  const auto tokenizer = Small();
  const SpecialTokens specials(*tokenizer, kNames);
  const PromptSegment segments[] = {{Kind::kTemplate, "a<gone>"}};
  EXPECT_EQ(specials.Encode(*tokenizer, segments).status().code(), base::Code::kUnsupported);
  const PromptSegment text[] = {{Kind::kText, "\xFF"}};
  EXPECT_EQ(specials.Encode(*tokenizer, text).status().field(), "messages");
}

TEST(PromptSegments, WriterJoinsWhatHasOneColour) {
  PromptWriter writer;
  writer.Template("a").Template("b").Text("").Text("c").Text("d").Template("e");
  EXPECT_EQ(writer.size(), 5u);
  const std::vector<PromptSegment> segments = writer.Take();
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[1].text, "cd");
}

TEST(PromptSegments, TooLongForAnyTokenisation) {
  const auto tokenizer = Small();
  EXPECT_TRUE(CheckPromptSize(30, *tokenizer, 10).ok());
  EXPECT_EQ(CheckPromptSize(33, *tokenizer, 10).reason(), "context_length_exceeded");
}

TEST(DeepseekTokenClasses, CaseMakesNoClass) {
  EXPECT_EQ(DeepseekTokenClasses(*Small()).value(),
            (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 0, 7, 8}));
}

TEST(DeepseekTokenClasses, NeedATokenizerJson) {
  VocabularySpec spec{.model = "gpt2", .pre = "gpt-2"};
  spec.tokens = {"a"};
  spec.kinds = {TokenKind::kNormal};
  const auto tokenizer = Tokenizer::FromVocabulary(spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  EXPECT_EQ(DeepseekTokenClasses(**tokenizer).status().code(), base::Code::kUnsupported);
}

}  // namespace
}  // namespace plumb::text
