// model/config_test.cc: each field within its range, each refused feature by name. Files are
// written key by key, so that a case is one key replaced or left out.
#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "model/gguf_writer.h"

namespace plumb::model {
namespace {

using base::Code;
using testing::HasSubstr;

// Metadata by key, so that a case can replace or remove one.
using Write = std::function<void(GgufWriter&, const std::string& key)>;
using Keys = std::map<std::string, Write>;

template <typename T>
Write Is(T value) {
  return [value](GgufWriter& writer, const std::string& key) { writer.Value(key, value); };
}
Write IsText(std::string value) {
  return [value](GgufWriter& writer, const std::string& key) { writer.Text(key, value); };
}

Keys Llama() {
  return {
      {"general.architecture", IsText("llama")},
      {"general.name", IsText("Small\x01 one")},
      {"llama.block_count", Is(2u)},
      {"llama.context_length", Is(2048u)},
      {"llama.embedding_length", Is(64u)},
      {"llama.feed_forward_length", Is(96u)},
      {"llama.attention.head_count", Is(4u)},
      {"llama.attention.head_count_kv", Is(2u)},
      {"llama.attention.layer_norm_rms_epsilon", Is(1e-5f)},
      {"llama.rope.freq_base", Is(500000.0f)},
  };
}

std::string File(const Keys& keys, uint64_t embedding = 64, uint64_t vocabulary = 10) {
  GgufWriter writer;
  for (const auto& [key, write] : keys) write(writer, key);
  const uint64_t dims[] = {embedding, vocabulary};
  writer.Tensor("token_embd.weight", 0, dims, std::string(embedding * vocabulary * 4, '\0'));
  return writer.Finish();
}

base::Result<Config> Read(const std::string& file) {
  auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
  if (!gguf.ok()) return gguf.status();
  return ReadConfig(**gguf);
}

TEST(Config, ReadsALlama) {
  auto config = Read(File(Llama()));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->family, Family::kLlama);
  EXPECT_EQ(config->name, "Small? one");
  EXPECT_EQ(config->layers, 2u);
  EXPECT_EQ(config->context_max, 2048u);
  EXPECT_EQ(config->embedding, 64u);
  EXPECT_EQ(config->feed_forward, 96u);
  EXPECT_EQ(config->heads, 4u);
  EXPECT_EQ(config->kv_heads, 2u);
  EXPECT_EQ(config->head_dim, 16u);
  EXPECT_EQ(config->vocabulary, 10u);
  EXPECT_EQ(config->rope_base, 500000.0f);
  EXPECT_EQ(config->rope_dims, 16u);
  EXPECT_EQ(config->rope_scale, 1.0f);
  EXPECT_EQ(config->rope_pairs, RotaryPairs::kAdjacent);
  EXPECT_EQ(config->sliding_window, 0u);
  EXPECT_TRUE(config->tied_output);
  EXPECT_FALSE(config->qkv_bias);
}

TEST(Config, AModelInSeveralFilesIsRefusedByItsCount) {
  Keys keys = Llama();
  keys["split.count"] = Is(uint16_t{1});
  EXPECT_TRUE(Read(File(keys)).ok());
  keys["split.count"] = Is(uint16_t{3});
  EXPECT_EQ(Read(File(keys)).status().code(), Code::kUnsupported);
  EXPECT_EQ(Read(File(keys)).status().field(), "split.count");
  EXPECT_THAT(Read(File(keys)).status().message(), HasSubstr("one of 3 files"));
  keys["split.count"] = IsText("three");
  EXPECT_EQ(Read(File(keys)).status().code(), Code::kCorrupt);
  EXPECT_EQ(Read(File(keys)).status().field(), "split.count");
}

TEST(Config, ReadsWhatIsOptional) {
  Keys keys = Llama();
  keys.erase("llama.attention.head_count_kv");
  keys.erase("llama.rope.freq_base");
  keys["llama.attention.key_length"] = Is(32u);
  keys["llama.attention.value_length"] = Is(32u);
  keys["llama.rope.dimension_count"] = Is(8u);
  keys["llama.rope.scaling.type"] = IsText("linear");
  keys["llama.rope.scaling.factor"] = Is(4.0f);
  keys["llama.attention.sliding_window"] = Is(512u);
  keys["llama.expert_count"] = Is(0u);
  keys["llama.attention.causal"] = Is(true);
  Keys untyped = keys;
  untyped.erase("llama.rope.scaling.type");
  EXPECT_EQ(Read(File(untyped))->rope_scale, 4.0f) << "a factor alone is linear";
  auto config = Read(File(keys));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->kv_heads, 4u);
  EXPECT_EQ(config->rope_base, 10000.0f);
  EXPECT_EQ(config->head_dim, 32u);
  EXPECT_EQ(config->rope_dims, 8u);
  EXPECT_EQ(config->rope_scale, 4.0f);
  EXPECT_EQ(config->sliding_window, 512u);
}

struct Refusal {
  const char* key;
  Write write;  // null = the key is left out
  Code code;
  const char* field;
};
Refusal Corrupt(const char* key, Write write) {
  return {key, std::move(write), Code::kCorrupt, key};
}
Refusal Unsupported(const char* key, Write write) {
  return {key, std::move(write), Code::kUnsupported, key};
}

TEST(Config, RefusesByField) {
  const Refusal cases[] = {
      Corrupt("general.architecture", nullptr),
      Corrupt("general.architecture", Is(3u)),
      Unsupported("general.architecture", IsText("gpt-j\n")),
      Corrupt("llama.block_count", nullptr),
      Corrupt("llama.block_count", Is(0u)),
      Corrupt("llama.block_count", Is(257u)),
      Corrupt("llama.block_count", Is(-1)),
      Corrupt("llama.block_count", Is(UINT64_MAX)),
      Corrupt("llama.block_count", IsText("2")),
      Corrupt("llama.context_length", Is(0u)),
      Corrupt("llama.context_length", Is(1u << 31)),
      Corrupt("llama.embedding_length", nullptr),
      Corrupt("llama.embedding_length", Is(kEmbeddingMax + 1)),
      Corrupt("llama.feed_forward_length", Is(kFeedForwardMax + 1)),
      Corrupt("llama.attention.head_count", Is(0u)),
      Corrupt("llama.attention.head_count", Is(6u)),
      Corrupt("llama.attention.head_count_kv", Is(0u)),
      Corrupt("llama.attention.head_count_kv", Is(3u)),
      Corrupt("llama.attention.head_count_kv", Is(8u)),
      Corrupt("llama.attention.key_length", Is(kHeadDimMax + 1)),
      Unsupported("llama.attention.value_length", Is(8u)),
      Corrupt("llama.attention.layer_norm_rms_epsilon", nullptr),
      Corrupt("llama.attention.layer_norm_rms_epsilon", Is(std::nanf(""))),
      Corrupt("llama.attention.layer_norm_rms_epsilon", Is(-1e-5f)),
      Corrupt("llama.rope.freq_base", Is(0.0f)),
      Corrupt("llama.rope.freq_base", Is(std::numeric_limits<float>::infinity())),
      Corrupt("llama.rope.dimension_count", Is(3u)),
      Corrupt("llama.rope.dimension_count", Is(18u)),
      Unsupported("llama.rope.scaling.type", IsText("yarn")),
      Corrupt("llama.rope.scaling.type", Is(1u)),
      Corrupt("llama.rope.scale_linear", Is(0.0f)),
      Corrupt("llama.attention.sliding_window", Is(UINT64_MAX)),
      Unsupported("llama.expert_shared_count", Is(1u)),
      Unsupported("llama.expert_gating_func", Is(2u)),
      Unsupported("llama.expert_weights_scale", Is(2.5f)),
      Corrupt("llama.expert_count", Is(kExpertsMax + 1)),
      Corrupt("llama.expert_used_count", Is(2u)),  // of no experts
      Unsupported("llama.final_logit_softcapping", Is(30.0f)),
      Unsupported("llama.attn_logit_softcapping", Is(50.0f)),
      Unsupported("llama.logit_scale", Is(0.5f)),
      Unsupported("llama.attention.causal", Is(false)),
      {"llama.vocab_size", Is(11u), Code::kCorrupt, "token_embd.weight"},
      {"tokenizer.ggml.tokens",
       [](GgufWriter& writer, const std::string& key) {
         writer.Texts(key, std::vector<std::string>(11, "x"));
       },
       Code::kCorrupt, "token_embd.weight"},
  };
  for (const Refusal& c : cases) {
    Keys keys = Llama();
    keys.erase(c.key);
    if (c.write) keys[c.key] = c.write;
    auto config = Read(File(keys));
    ASSERT_FALSE(config.ok()) << c.key;
    EXPECT_EQ(config.status().code(), c.code) << c.key << ": " << config.status().ToString();
    EXPECT_EQ(config.status().field(), c.field) << config.status().ToString();
    EXPECT_THAT(config.status().message(), HasSubstr(c.field));
    EXPECT_THAT(config.status().message(), testing::Not(HasSubstr("\n")));
  }
}

TEST(Config, RefusesAnEmbeddingOfAnotherShape) {
  auto wrong_width = Read(File(Llama(), 32));
  EXPECT_EQ(wrong_width.status().code(), Code::kCorrupt);
  EXPECT_EQ(wrong_width.status().field(), "token_embd.weight");
  GgufWriter writer;
  for (const auto& [key, write] : Llama()) write(writer, key);
  auto absent = Read(writer.Finish());
  EXPECT_EQ(absent.status().code(), Code::kCorrupt);
  EXPECT_EQ(absent.status().field(), "token_embd.weight");
}

// The same keys under another architecture's name.
Keys As(const std::string& architecture) {
  Keys keys;
  for (const auto& [key, write] : Llama()) {
    const bool own = key.starts_with("llama.");
    keys[own ? architecture + key.substr(5) : key] = write;
  }
  keys["general.architecture"] = IsText(architecture);
  return keys;
}

TEST(Config, ALlamaWithExpertsIsMixtral) {
  Keys keys = Llama();
  keys["llama.expert_count"] = Is(8u);
  EXPECT_EQ(Read(File(keys)).status().field(), "llama.expert_used_count");
  keys["llama.expert_used_count"] = Is(9u);
  EXPECT_EQ(Read(File(keys)).status().code(), Code::kCorrupt);
  keys["llama.expert_used_count"] = Is(2u);
  auto config = Read(File(keys));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->family, Family::kMixtral);
  EXPECT_EQ(config->experts, 8u);
  EXPECT_EQ(config->experts_used, 2u);
  EXPECT_EQ(config->feed_forward, 96u);
  EXPECT_TRUE(config->expert_norm);
  EXPECT_EQ(config->rope_pairs, RotaryPairs::kAdjacent);
}

TEST(Config, Qwen3MoeNeedsExpertsOfTheirOwnWidth) {
  Keys keys = As("qwen3moe");
  EXPECT_EQ(Read(File(keys)).status().field(), "qwen3moe.expert_count");
  keys["qwen3moe.expert_count"] = Is(4u);
  keys["qwen3moe.expert_used_count"] = Is(4u);
  keys["qwen3moe.expert_feed_forward_length"] = Is(24u);
  keys["qwen3moe.expert_weights_norm"] = Is(false);
  auto config = Read(File(keys));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->feed_forward, 24u);
  EXPECT_FALSE(config->expert_norm);
  keys["qwen3moe.expert_weights_norm"] = Is(1u);
  EXPECT_EQ(Read(File(keys)).status().field(), "qwen3moe.expert_weights_norm");
  Keys dense = As("qwen3");
  dense["qwen3.expert_count"] = Is(4u);
  EXPECT_EQ(Read(File(dense)).status().code(), Code::kUnsupported);
}

TEST(Config, Gemma3SaysWhichLayersHaveAWindow) {
  Keys keys = As("gemma3");
  keys["gemma3.block_count"] = Is(7u);
  auto without = Read(File(keys));
  ASSERT_TRUE(without.ok()) << without.status().ToString();
  EXPECT_THAT(without->layer_windows, testing::Each(0u));
  EXPECT_EQ(without->attention_scale, 0.25f);  // heads of 16

  keys["gemma3.attention.sliding_window"] = Is(512u);
  keys["gemma3.attention.scale"] = Is(0.125f);
  keys["gemma3.final_logit_softcapping"] = Is(30.0f);
  const std::string pattern = "gemma3.attention.sliding_window_pattern";
  auto config = Read(File(keys));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_THAT(config->layer_windows, testing::ElementsAre(512, 512, 512, 512, 512, 0, 512));
  EXPECT_EQ(config->rope_base_local, 10000.0f);
  EXPECT_EQ(config->attention_scale, 0.125f);
  EXPECT_EQ(config->final_soft_cap, 30.0f);

  keys[pattern] = Is(3u);
  EXPECT_THAT(Read(File(keys))->layer_windows, testing::ElementsAre(512, 512, 0, 512, 512, 0, 512));
  keys[pattern] = Is(0u);
  EXPECT_EQ(Read(File(keys)).status().field(), pattern);
  const auto flags = [&](std::vector<bool> values) {
    keys[pattern] = [values](GgufWriter& writer, const std::string& key) {
      writer.Values(key, std::vector<uint8_t>(values.begin(), values.end()));
    };
  };
  flags({true, false, true, false, true, true, true});
  EXPECT_THAT(Read(File(keys))->layer_windows, testing::ElementsAre(512, 0, 512, 0, 512, 512, 512));
  flags({true, false});
  EXPECT_EQ(Read(File(keys)).status().field(), pattern);
}

// The 27B model alone scales scores by its width per head; its file has no key for it.
TEST(Config, Gemma3Of62LayersScalesByItsWidth) {
  Keys keys = As("gemma3");
  keys["gemma3.block_count"] = Is(62u);
  keys["gemma3.attention.key_length"] = Is(32u);
  keys["gemma3.attention.value_length"] = Is(32u);
  EXPECT_EQ(Read(File(keys))->attention_scale, 0.25f);  // 64 / 4 heads
}

TEST(Config, QwenDoesNotSayWhichLayersHaveAWindow) {
  for (const std::string architecture : {"qwen2", "qwen3"}) {
    Keys keys = As(architecture);
    keys[architecture + ".attention.sliding_window"] = Is(512u);
    EXPECT_TRUE(Read(File(keys))->windows_unknown);
    keys[architecture + ".attention.sliding_window"] = Is(2048u);  // the whole context
    EXPECT_FALSE(Read(File(keys))->windows_unknown);
  }
}

TEST(Config, Qwen2AndGemma3PairHalves) {
  for (const char* architecture : {"qwen2", "qwen3", "gemma3"}) {
    const Keys keys = As(architecture);
    auto config = Read(File(keys));
    ASSERT_TRUE(config.ok()) << config.status().ToString();
    EXPECT_EQ(config->rope_pairs, RotaryPairs::kHalves);
    EXPECT_EQ(config->architecture, architecture);
  }
}

}  // namespace
}  // namespace plumb::model
