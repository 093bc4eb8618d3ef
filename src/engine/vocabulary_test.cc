// engine/vocabulary_test.cc
// What is copied out of a GGUF file's tokenizer keys, and what is refused there.
#include "engine/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "model/gguf.h"
#include "model/gguf_writer.h"
#include "model/hf_text.h"

namespace plumb::engine {
namespace {

using base::Code;
using model::Gguf;
using model::GgufWriter;
using testing::ElementsAre;
using text::TokenKind;

// A file with a tokenizer, after `change` has added to it.
base::Result<text::VocabularySpec> Read(const std::function<void(GgufWriter&)>& change,
                                        bool with_model = true) {
  GgufWriter writer;
  if (with_model) writer.Text("tokenizer.ggml.model", "gpt2");
  writer.Texts("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "<|im_end|>"});
  change(writer);
  const std::string bytes = writer.Finish();
  ASSIGN_OR_RETURN(const auto file, Gguf::Parse(std::as_bytes(std::span(bytes))));
  return ReadVocabulary(*file);
}

TEST(ReadVocabulary, CopiesEveryKey) {
  const auto spec = Read([](GgufWriter& writer) {
    writer.Text("tokenizer.ggml.pre", "qwen2")
        .Texts("tokenizer.ggml.merges", std::vector<std::string>{"a b"})
        .Values("tokenizer.ggml.scores", std::vector<float>{0.5f, -1.0f, 0.0f})
        .Values("tokenizer.ggml.token_type", std::vector<int32_t>{1, 0, 3})
        .Value("tokenizer.ggml.bos_token_id", uint32_t{1})
        .Value("tokenizer.ggml.eos_token_id", uint32_t{2})
        .Value("tokenizer.ggml.seperator_token_id", uint32_t{0})
        .Value("tokenizer.ggml.add_bos_token", true);
  });
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->model, "gpt2");
  EXPECT_EQ(spec->pre, "qwen2");
  EXPECT_THAT(spec->tokens, ElementsAre("a", "b", "<|im_end|>"));
  EXPECT_THAT(spec->merges, ElementsAre("a b"));
  EXPECT_THAT(spec->scores, ElementsAre(0.5f, -1.0f, 0.0f));
  EXPECT_THAT(spec->kinds,
              ElementsAre(TokenKind::kNormal, TokenKind::kNormal, TokenKind::kControl));
  EXPECT_EQ(spec->bos, 1u);
  EXPECT_EQ(spec->eos, 2u);
  EXPECT_EQ(spec->sep, 0u);
  EXPECT_EQ(spec->unk, std::nullopt);
  EXPECT_EQ(spec->add_bos, true);
  EXPECT_EQ(spec->add_eos, std::nullopt);
}

TEST(ReadVocabulary, RefusesAbsentAndWrongKeys) {
  EXPECT_EQ(Read([](GgufWriter&) {}, false).status().code(), Code::kNotFound);
  const struct {
    const char* name;
    std::function<void(GgufWriter&)> change;
  } cases[] = {
      {"kind above",
       [](auto& w) { w.Values("tokenizer.ggml.token_type", std::vector<int32_t>{7}); }},
      {"kind below",
       [](auto& w) { w.Values("tokenizer.ggml.token_type", std::vector<int32_t>{-1}); }},
      {"id above", [](auto& w) { w.Value("tokenizer.ggml.eos_token_id", uint64_t{1} << 32); }},
      {"id below", [](auto& w) { w.Value("tokenizer.ggml.eos_token_id", int32_t{-1}); }},
      {"id of text", [](auto& w) { w.Text("tokenizer.ggml.eos_token_id", "2"); }},
      {"merges of numbers",
       [](auto& w) { w.Values("tokenizer.ggml.merges", std::vector<int32_t>{1}); }},
  };
  for (const auto& item : cases) {
    EXPECT_EQ(Read(item.change).status().code(), Code::kCorrupt) << item.name;
  }
}

// The tokenizer of a file with these keys. Its vocabulary has room for `rows` entries.
base::Result<std::unique_ptr<text::Tokenizer>> Make(const std::function<void(GgufWriter&)>& change,
                                                    uint64_t rows = 8) {
  GgufWriter writer;
  change(writer);
  const uint64_t dims[] = {1, rows};
  writer.Tensor("token_embd.weight", 0, dims, std::string(rows * 4, 'x'));
  const std::string bytes = writer.Finish();
  ASSIGN_OR_RETURN(const auto file, Gguf::Parse(std::as_bytes(std::span(bytes))));
  return MakeTokenizer(*file);
}

constexpr char kJson[] = R"({"version": "1.0", "added_tokens": [
  {"id": 2, "content": "<s>", "special": true, "single_word": false, "lstrip": false,
   "rstrip": false, "normalized": false},
  {"id": 3, "content": "<image>", "special": true, "single_word": false, "lstrip": false,
   "rstrip": false, "normalized": false}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                    "use_regex": true},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
              "use_regex": true},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})";

TEST(MakeTokenizer, TakesTokenizerJsonWithWhatStandsBesideIt) {
  const auto tokenizer = Make(
      [](GgufWriter& writer) {
        writer.Text(model::kHfTokenizerKey, kJson).Text(model::kHfBosKey, "<s>");
        writer.Text(model::kHfEosKey, "b").Value(model::kHfAddBosKey, true);
        writer.Values(model::kHfEndIdsKey, std::vector<uint32_t>{0});
      },
      3);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  EXPECT_EQ((*tokenizer)->size(), 3u) << "the model has no row for <image>";
  EXPECT_EQ((*tokenizer)->eos(), base::TokenId{1});
  EXPECT_THAT((*tokenizer)->end_tokens(), ElementsAre(base::TokenId{0}, base::TokenId{1}));
  EXPECT_THAT(*(*tokenizer)->Encode("ab", text::ControlTokens::kParse, true),
              ElementsAre(base::TokenId{2}, base::TokenId{0}, base::TokenId{1}));
}

TEST(MakeTokenizer, RefusesAbsentAndWrongKeys) {
  EXPECT_EQ(Make([](GgufWriter&) {}).status().code(), Code::kNotFound);
  const auto code = [](const std::function<void(GgufWriter&)>& change) {
    return Make([&](GgufWriter& writer) {
             writer.Text(model::kHfTokenizerKey, kJson);
             change(writer);
           })
        .status()
        .code();
  };
  EXPECT_EQ(code([](GgufWriter&) {}), Code::kOk);
  EXPECT_EQ(code([](auto& w) { w.Value(model::kHfBosKey, uint32_t{1}); }), Code::kCorrupt);
  EXPECT_EQ(code([](auto& w) { w.Value(model::kHfAddBosKey, uint32_t{1}); }), Code::kCorrupt);
  EXPECT_EQ(code([](auto& w) { w.Values(model::kHfEndIdsKey, std::vector<int64_t>{-1}); }),
            Code::kCorrupt);
  EXPECT_EQ(code([](auto& w) { w.Values(model::kHfEndIdsKey, std::vector<uint32_t>{9}); }),
            Code::kInvalidArgument);
}

TEST(ReadChatTemplates, AreEmptyWhenThereAreNone) {
  for (const std::string source : {"", "{{ messages }}"}) {
    const std::string tool_use = source.empty() ? "" : "{{ tools }}";
    GgufWriter writer;
    writer.Text("general.architecture", "llama");
    if (!source.empty()) {
      writer.Text("tokenizer.chat_template", source);
      writer.Text("tokenizer.chat_template.rag", "{{ documents }}");
      writer.Text("tokenizer.chat_template.tool_use", tool_use);
    }
    const std::string bytes = writer.Finish();
    auto file = Gguf::Parse(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    auto read = ReadChatTemplates(**file);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(read->chat, source);
    EXPECT_EQ(read->tool_use, tool_use);
  }
}

TEST(ReadChatTemplates, MustBeTexts) {
  for (const char* key : {"tokenizer.chat_template", "tokenizer.chat_template.tool_use"}) {
    GgufWriter writer;
    writer.Text("general.architecture", "llama").Value(key, uint32_t{5});
    const std::string bytes = writer.Finish();
    auto file = Gguf::Parse(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    EXPECT_EQ(ReadChatTemplates(**file).status().code(), Code::kCorrupt) << key;
  }
}

}  // namespace
}  // namespace plumb::engine
