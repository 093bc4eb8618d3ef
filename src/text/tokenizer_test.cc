// text/tokenizer_test.cc
// Small vocabularies made by hand, hostile ones, and a small tokenizer.json. Real vocabularies are
// tested against references in tests/golden/tokenizer.
#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "text/vocabulary_rules.h"

namespace plumb::text {
namespace {

using base::Code;
using testing::ElementsAre;
using testing::HasSubstr;

// Byte-level: letters, one merge chain, a control and a user-defined token.
VocabularySpec ByteLevelSpec() {
  VocabularySpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt-2";
  spec.tokens = {"a", "b", "c", "ab", "abc", "Ġ", "Ġa", "<|im_end|>", "<tool>", "1"};
  spec.kinds.assign(spec.tokens.size(), TokenKind::kNormal);
  spec.kinds[7] = TokenKind::kControl;
  spec.kinds[8] = TokenKind::kUserDefined;
  spec.merges = {"a b", "ab c", "Ġ a"};
  return spec;
}

VocabularySpec SentencePieceSpec() {
  VocabularySpec spec;
  spec.model = "llama";
  spec.tokens = {"<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a", "<0xC3>", "<0xA9>"};
  spec.scores = {0, 0, 0, -1, -2, -3, -5, -4, 0, 0};
  spec.kinds = {TokenKind::kUnknown, TokenKind::kControl, TokenKind::kControl, TokenKind::kNormal,
                TokenKind::kNormal,  TokenKind::kNormal,  TokenKind::kNormal,  TokenKind::kNormal,
                TokenKind::kByte,    TokenKind::kByte};
  return spec;
}

std::vector<uint32_t> Encode(const Tokenizer& tokenizer, std::string_view text,
                             ControlTokens control = ControlTokens::kAsText,
                             bool add_special = false) {
  auto tokens = tokenizer.Encode(text, control, add_special);
  EXPECT_TRUE(tokens.ok()) << tokens.status().ToString();
  std::vector<uint32_t> ids;
  if (!tokens.ok()) return ids;
  for (const TokenId token : *tokens) ids.push_back(base::Index(token));
  return ids;
}

std::unique_ptr<Tokenizer> Build(const VocabularySpec& spec) {
  auto tokenizer = Tokenizer::FromVocabulary(spec);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  return tokenizer.ok() ? std::move(*tokenizer) : nullptr;
}

TEST(Tokenizer, MergesByRank) {
  const auto tokenizer = Build(ByteLevelSpec());
  ASSERT_TRUE(tokenizer);
  EXPECT_THAT(Encode(*tokenizer, "abcab a"), ElementsAre(4, 3, 6));
  EXPECT_THAT(Encode(*tokenizer, ""), ElementsAre());
  EXPECT_EQ(tokenizer->TokenBytes(TokenId{6}), " a");
  EXPECT_EQ(tokenizer->TokenName(TokenId{6}), "Ġa");
}

TEST(Tokenizer, FindsTheFirstAndLongestControlToken) {
  VocabularySpec spec = ByteLevelSpec();
  for (const char* other_begin : {"", "[END]"}) {
    if (*other_begin != '\0') {
      spec.tokens.emplace_back(other_begin);
      spec.kinds.push_back(TokenKind::kControl);
    }
    spec.tokens[9] = "<|im_end|>>";
    spec.kinds[9] = TokenKind::kControl;
    const auto tokenizer = Build(spec);
    ASSERT_TRUE(tokenizer);
    const std::string text = "<|< <|im_end|> <tool> <|im_end|>> [END]";
    EXPECT_EQ(tokenizer->FindControl(text, 0).place, 4u);
    EXPECT_EQ(tokenizer->FindControl(text, 0).size, 10u);
    EXPECT_EQ(tokenizer->FindControl(text, 5).place, 22u);
    EXPECT_EQ(tokenizer->FindControl(text, 5).size, 11u);
    EXPECT_EQ(tokenizer->FindControl(text, 23).size, std::string_view(other_begin).size());
    EXPECT_EQ(tokenizer->FindControl("", 0).place, std::string_view::npos);
  }
}

TEST(Tokenizer, ParsesControlTokensOnlyWhenAsked) {
  const auto tokenizer = Build(ByteLevelSpec());
  ASSERT_TRUE(tokenizer);
  EXPECT_THAT(Encode(*tokenizer, "a<|im_end|>b", ControlTokens::kParse), ElementsAre(0, 7, 1));
  // The characters of "<|im_end|>" have no entries here and are dropped.
  EXPECT_THAT(Encode(*tokenizer, "a<|im_end|>b"), ElementsAre(0, 1));
  EXPECT_THAT(Encode(*tokenizer, "a<tool>b"), ElementsAre(0, 8, 1));
  EXPECT_TRUE(tokenizer->IsControl(TokenId{7}));
  EXPECT_FALSE(tokenizer->IsControl(TokenId{8}));
  EXPECT_EQ(tokenizer->TokenBytes(TokenId{7}), "");
  EXPECT_EQ(tokenizer->TokenBytes(TokenId{8}), "<tool>");
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(TokenId{7}));
}

// Parsers look for it in the text of answers; what a message says is never it.
TEST(Tokenizer, MarkupOfAnswersIsTextThoughItIsControl) {
  VocabularySpec spec = ByteLevelSpec();
  spec.tokens.push_back("[TOOL_CALLS]");
  spec.kinds.push_back(TokenKind::kControl);
  const auto tokenizer = Build(spec);
  EXPECT_EQ(tokenizer->TokenBytes(TokenId{10}), "[TOOL_CALLS]");
  EXPECT_TRUE(tokenizer->IsControl(TokenId{10}));
  EXPECT_EQ(tokenizer->ControlSpelling("[TOOL_CALLS]a"), 12u);
  EXPECT_EQ(tokenizer->TokenBytes(TokenId{7}), "");
}

TEST(Tokenizer, AnswersForIdsOutOfRange) {
  const auto tokenizer = Build(ByteLevelSpec());
  ASSERT_TRUE(tokenizer);
  for (const uint32_t id : {10u, 11u, std::numeric_limits<uint32_t>::max()}) {
    EXPECT_EQ(tokenizer->TokenBytes(TokenId{id}), "");
    EXPECT_EQ(tokenizer->TokenName(TokenId{id}), "");
    EXPECT_FALSE(tokenizer->IsControl(TokenId{id}));
  }
}

TEST(Tokenizer, JoinsByScoreAndFallsBackToBytes) {
  const auto tokenizer = Build(SentencePieceSpec());
  ASSERT_TRUE(tokenizer);
  // "▁a" (-4) is joined before "ab" (-5).
  EXPECT_THAT(Encode(*tokenizer, "ab"), ElementsAre(7, 5));
  EXPECT_THAT(Encode(*tokenizer, "é"), ElementsAre(3, 8, 9));
  EXPECT_THAT(Encode(*tokenizer, "x"), ElementsAre(3, 0)) << "no byte entry: unknown";
  EXPECT_THAT(Encode(*tokenizer, "ab", ControlTokens::kAsText, true), ElementsAre(1, 7, 5));
  EXPECT_THAT(Encode(*tokenizer, "</s>a", ControlTokens::kParse), ElementsAre(2, 7));
  EXPECT_EQ(tokenizer->TokenBytes(TokenId{7}), " a");
  EXPECT_EQ(tokenizer->TokenBytes(TokenId{8}), "\xC3");
  EXPECT_EQ(tokenizer->bos(), TokenId{1});
  EXPECT_EQ(tokenizer->eos(), TokenId{2});
}

TEST(Tokenizer, RefusesTextsThatAreNotUtf8OrTooLong) {
  const auto tokenizer = Build(ByteLevelSpec());
  ASSERT_TRUE(tokenizer);
  for (const char* text : {"a\xFFz", "\xC3", "\xED\xA0\x80"}) {
    const auto tokens = tokenizer->Encode(text, ControlTokens::kAsText, false);
    ASSERT_FALSE(tokens.ok()) << text;
    EXPECT_EQ(tokens.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(tokens.status().field(), "text");
  }
  const std::string large(Tokenizer::kTextBytesMax + 1, 'a');
  EXPECT_EQ(tokenizer->Encode(large, ControlTokens::kAsText, false).status().code(),
            Code::kInvalidArgument);
}

TEST(Tokenizer, EncodesLongRunsInBoundedTime) {
  // Quadratic work on 1 MiB would not end within the test's time limit.
  const std::string letters(1u << 20, 'a'), spaces(1u << 20, ' ');
  for (const auto& spec : {ByteLevelSpec(), SentencePieceSpec()}) {
    const auto tokenizer = Build(spec);
    ASSERT_TRUE(tokenizer);
    EXPECT_GE(Encode(*tokenizer, letters).size(), letters.size());
    EXPECT_GE(Encode(*tokenizer, spaces).size(), spaces.size());
  }
}

TEST(Tokenizer, RefusesInconsistentVocabularies) {
  const struct {
    const char* name;
    std::function<void(VocabularySpec&)> spoil;
  } cases[] = {
      {"no tokens", [](auto& spec) { spec = {}, spec.model = "gpt2"; }},
      {"scores", [](auto& spec) { spec.scores = {1.0f}; }},
      {"kinds", [](auto& spec) { spec.kinds.pop_back(); }},
      {"kind", [](auto& spec) { spec.kinds[0] = static_cast<TokenKind>(7); }},
      {"nan", [](auto& spec) { spec.scores.assign(spec.tokens.size(), std::nanf("")); }},
      {"bos", [](auto& spec) { spec.bos = 1000; }},
      {"eos", [](auto& spec) { spec.eos = 0xFFFFFFFF; }},
      {"pad", [](auto& spec) { spec.pad = 10; }},
      {"no bos to add", [](auto& spec) { spec.bos.reset(), spec.add_bos = true; }},
      {"no eos to add", [](auto& spec) { spec.eos.reset(), spec.add_eos = true; }},
      {"merge without parts", [](auto& spec) { spec.merges.push_back("ab"); }},
      {"empty merge", [](auto& spec) { spec.merges.push_back(""); }},
      {"token not UTF-8", [](auto& spec) { spec.tokens[0] = "\xFF"; }},
      {"long token", [](auto& spec) { spec.tokens[0] = std::string(kTokenTextBytesMax + 1, 'a'); }},
      {"many tokens", [](auto& spec) { spec.tokens.resize(kTokensMax + 1), spec.kinds.clear(); }},
  };
  for (const auto& item : cases) {
    VocabularySpec spec = ByteLevelSpec();
    item.spoil(spec);
    const auto tokenizer = Tokenizer::FromVocabulary(spec);
    ASSERT_FALSE(tokenizer.ok()) << item.name;
    EXPECT_EQ(tokenizer.status().code(), Code::kInvalidArgument) << item.name;
    EXPECT_NE(tokenizer.status().field(), "") << item.name;
  }
}

TEST(Tokenizer, RefusesModelsItDoesNotKnowByName) {
  VocabularySpec spec = ByteLevelSpec();
  spec.pre = "kimi-k2";
  auto tokenizer = Tokenizer::FromVocabulary(spec);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), Code::kUnsupported);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("kimi-k2"));
  spec.model = "rwkv";
  tokenizer = Tokenizer::FromVocabulary(spec);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), Code::kUnsupported);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("rwkv"));
}

TEST(Tokenizer, BearsOddVocabularies) {
  VocabularySpec spec = ByteLevelSpec();
  spec.tokens[1] = "a";                         // twice
  spec.tokens[2] = "";                          // empty
  spec.tokens[8] = "";                          // empty and user-defined
  spec.merges = {"a b", "x y", "ab c", "  a"};  // entries that are not there
  const auto tokenizer = Build(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_THAT(Encode(*tokenizer, "a"), ElementsAre(0)) << "the lower id of two";
  EXPECT_EQ(tokenizer->TokenBytes(TokenId{2}), "");
  VocabularySpec pieces = SentencePieceSpec();
  pieces.scores.assign(pieces.tokens.size(), -std::numeric_limits<float>::infinity());
  const auto ties = Build(pieces);
  ASSERT_TRUE(ties);
  EXPECT_THAT(Encode(*ties, "ab"), ElementsAre(7, 5)) << "the leftmost of equals";
  pieces.scores.clear();
  EXPECT_EQ(Tokenizer::FromVocabulary(pieces).status().code(), Code::kInvalidArgument);
}

TEST(Tokenizer, AnUnmistakableEndTokenIsControlWhateverTheFileSays) {
  VocabularySpec spec = ByteLevelSpec();
  spec.tokens[8] = "<|eot_id|>";
  const auto tokenizer = Build(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_TRUE(tokenizer->IsControl(TokenId{8}));
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(TokenId{7}, TokenId{8}));
  spec.tokens[8] = "</s>";  // in Gemma, an HTML tag
  const auto gemma = Build(spec);
  ASSERT_TRUE(gemma);
  EXPECT_EQ(gemma->TokenBytes(TokenId{8}), "</s>");
  EXPECT_THAT(gemma->end_tokens(), ElementsAre(TokenId{7}));
}

TEST(Tokenizer, EndOfAPartDoesNotEndTheAnswer) {
  VocabularySpec spec = ByteLevelSpec();
  spec.tokens = {"<|end|>", "<|return|>", "<|call|>", "a"};
  spec.kinds = {TokenKind::kControl, TokenKind::kControl, TokenKind::kControl, TokenKind::kNormal};
  spec.merges.clear();
  auto tokenizer = Build(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(TokenId{1}, TokenId{2}));
  spec.tokens[1] = "<|other|>";
  tokenizer = Build(spec);
  ASSERT_TRUE(tokenizer);
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(TokenId{0}, TokenId{2}));
}

constexpr char kJson[] = R"({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [
    {"id": 4, "content": "<|end_of_text|>", "special": true, "single_word": false, "lstrip": false,
     "rstrip": false, "normalized": false},
    {"id": 5, "content": "<x>", "special": false, "single_word": false, "lstrip": false,
     "rstrip": false, "normalized": false}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                    "use_regex": true},
  "post_processor": null,
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
              "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3}, "merges": ["a b"]}})";

TEST(Tokenizer, ReadsTokenizerJson) {
  auto tokenizer = Tokenizer::FromJson(kJson);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  EXPECT_EQ((*tokenizer)->size(), 6u);
  EXPECT_THAT(Encode(**tokenizer, "ab <x><|end_of_text|>", ControlTokens::kParse),
              ElementsAre(2, 3, 5, 4));
  EXPECT_THAT(Encode(**tokenizer, "ab<|end_of_text|>"), ElementsAre(2))
      << "no entries for the rest";
  EXPECT_EQ((*tokenizer)->TokenBytes(TokenId{3}), " ");
  EXPECT_EQ((*tokenizer)->TokenBytes(TokenId{4}), "");
  EXPECT_EQ((*tokenizer)->TokenBytes(TokenId{5}), "<x>");
  EXPECT_EQ((*tokenizer)->eos(), TokenId{4});
  EXPECT_THAT((*tokenizer)->end_tokens(), ElementsAre(TokenId{4}));
}

TEST(Tokenizer, SettingsBesideTokenizerJson) {
  const auto build = [](const JsonSettings& settings) {
    auto tokenizer = Tokenizer::FromJson(kJson, settings);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    return *std::move(tokenizer);
  };
  const auto around = [](const Tokenizer& tokenizer) {
    return *tokenizer.Encode("ab", ControlTokens::kParse, /*add_special=*/true);
  };
  const TokenId ab{2}, end{4}, x{5};
  EXPECT_THAT(around(*build({})), ElementsAre(ab));
  const auto named = build({.bos = "<x>", .eos = "b", .end_ids = {3, 4}});
  EXPECT_EQ(named->bos(), x);
  EXPECT_EQ(named->eos(), TokenId{1});
  EXPECT_THAT(named->end_tokens(), ElementsAre(TokenId{1}, TokenId{3}, end));
  EXPECT_THAT(around(*named), ElementsAre(ab)) << "a name alone adds nothing";
  const auto both = build({.bos = "<x>", .add_bos = true, .add_eos = true});
  EXPECT_THAT(around(*both), ElementsAre(x, ab, end));
  EXPECT_THAT(*both->Encode("ab", ControlTokens::kParse, false), ElementsAre(ab));
  EXPECT_THAT(around(*build({.bos = "<x>", .add_bos = false})), ElementsAre(ab));

  // What tokenizer.json itself puts there goes when the settings say so, and is not doubled.
  std::string with_bos(kJson);
  constexpr std::string_view kNone = "\"post_processor\": null";
  with_bos.replace(with_bos.find(kNone), kNone.size(),
                   R"("post_processor": {"type": "TemplateProcessing",
                       "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}},
                                  {"Sequence": {"id": "A", "type_id": 0}}],
                       "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                                {"Sequence": {"id": "B", "type_id": 1}}],
                       "special_tokens": {"<x>": {"id": "<x>", "ids": [5], "tokens": ["<x>"]}}})");
  const auto encode = [&](std::optional<bool> add_bos) {
    const auto tokenizer = Tokenizer::FromJson(with_bos, {.bos = "<x>", .add_bos = add_bos});
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
    return around(**tokenizer);
  };
  EXPECT_THAT(encode(std::nullopt), ElementsAre(x, ab));
  EXPECT_THAT(encode(true), ElementsAre(x, ab));
  EXPECT_THAT(encode(false), ElementsAre(ab));
}

TEST(Tokenizer, AddedTokensThatTheModelLacksAreLeftOut) {
  const auto tokenizer = Tokenizer::FromJson(kJson, {.ids_max = 5});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  EXPECT_EQ((*tokenizer)->size(), 5u);
  EXPECT_THAT(Encode(**tokenizer, "ab<x>", ControlTokens::kParse), ElementsAre(2))
      << "no entries for the rest";
  const auto smaller = Tokenizer::FromJson(kJson, {.ids_max = 3});
  EXPECT_EQ(smaller.status().code(), Code::kInvalidArgument);
}

TEST(Tokenizer, RefusesSettingsThatNameNoToken) {
  const auto field = [](const JsonSettings& settings) {
    const auto tokenizer = Tokenizer::FromJson(kJson, settings);
    EXPECT_EQ(tokenizer.status().code(), Code::kInvalidArgument);
    return tokenizer.status().field();
  };
  EXPECT_EQ(field({.bos = "<s>"}), "bos_token");
  EXPECT_EQ(field({.eos = "</s>"}), "eos_token");
  EXPECT_EQ(field({.end_ids = {6}}), "eos_token_id");
  EXPECT_EQ(field({.add_bos = true}), "add_bos_token");
}

TEST(Tokenizer, RefusesBadTokenizerJson) {
  for (const std::string json : {"", "{", "[]", "{}", R"({"model": 3})", "\xFF"}) {
    const auto tokenizer = Tokenizer::FromJson(json);
    ASSERT_FALSE(tokenizer.ok()) << json;
    EXPECT_NE(tokenizer.status().code(), Code::kInternal) << tokenizer.status().ToString();
  }
  std::string large_id(kJson);
  large_id.replace(large_id.find("\"Ġ\": 3"), 7, "\"Ġ\": 4000000000");
  EXPECT_EQ(Tokenizer::FromJson(large_id).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace plumb::text
