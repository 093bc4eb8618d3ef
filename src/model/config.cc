// model/config.cc
// One reader per key, with its range; then the relations between numbers. Order of the checks:
// family, refused features, numbers, shapes that the tensors themselves tell (vocabulary, biases,
// tied output).
#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace plumb::model {
namespace {

using base::Code;
using base::Corrupt;
using base::Result;
using base::Status;

Result<Family> FamilyOf(std::string_view architecture) {
  if (architecture == "llama") return Family::kLlama;
  if (architecture == "qwen2") return Family::kQwen2;
  if (architecture == "gemma3") return Family::kGemma3;
  std::string shown(architecture.substr(0, 40));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return base::Unsupported(
             fmt::format("general.architecture \"{}\" is not supported (llama and qwen2 are)",
                         shown))
      .WithField("general.architecture");
}

// Keys "<architecture>.<name>" with the errors of ReadConfig.
class KeyReader {
 public:
  KeyReader(const Checkpoint& gguf, std::string_view architecture)
      : gguf_(gguf), architecture_(architecture) {}

  std::string Key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  bool Has(std::string_view name) const { return gguf_.Has(Key(name)); }

  Result<uint32_t> Integer(std::string_view name, uint32_t min, uint32_t max) const {
    const std::string key = Key(name);
    auto value = gguf_.Unsigned(key);
    if (!value.ok()) return Fail(key, value.status());
    if (*value < min || *value > max) {
      return Corrupt(fmt::format("{} is {}, expected {} to {}", key, *value, min, max))
          .WithField(key);
    }
    return static_cast<uint32_t>(*value);
  }
  Result<uint32_t> IntegerOr(std::string_view name, uint32_t fallback, uint32_t min,
                             uint32_t max) const {
    if (!Has(name)) return fallback;
    return Integer(name, min, max);
  }

  Result<float> Float(std::string_view name, double min, double max) const {
    const std::string key = Key(name);
    auto value = gguf_.Number(key);
    if (!value.ok()) return Fail(key, value.status());
    if (!(*value >= min && *value <= max)) {  // also refuses NaN
      return Corrupt(fmt::format("{} is {}, expected {} to {}", key, *value, min, max))
          .WithField(key);
    }
    return static_cast<float>(*value);
  }
  Result<float> FloatOr(std::string_view name, float fallback, double min, double max) const {
    if (!Has(name)) return fallback;
    return Float(name, min, max);
  }

 private:
  static Status Fail(const std::string& key, const Status& status) {
    return Corrupt(status.message()).WithField(key);
  }
  const Checkpoint& gguf_;
  std::string architecture_;
};

// Features of other models that share the architecture's name. A value of 0 (or "none") is
// harmless.
Status RefuseFeatures(const Checkpoint& gguf, const KeyReader& keys) {
  constexpr std::string_view kRefused[] = {
      "expert_count",
      "expert_used_count",
      "logit_scale",
      "residual_scale",
      "embedding_scale",
      "attention.scale",
      "attention.clamp_kqv",
      "attention.max_alibi_bias",
      "attn_logit_softcapping",
      "final_logit_softcapping",
      "attention.temperature_scale",
      "rope.scaling.attn_factor",
      "rope.scaling.yarn_log_multiplier",
  };
  for (const std::string_view name : kRefused) {
    if (!keys.Has(name)) continue;
    const std::string key = keys.Key(name);
    auto value = gguf.Number(key);
    if (value.ok() && *value == 0.0) continue;
    return base::Unsupported(fmt::format("{} asks for a feature that is not supported", key))
        .WithField(key);
  }
  const std::string causal = keys.Key("attention.causal");
  if (gguf.Has(causal)) {
    auto value = gguf.Bool(causal);
    if (!value.ok() || !*value) {
      return base::Unsupported(fmt::format("{}: only causal attention is supported", causal))
          .WithField(causal);
    }
  }
  return base::OkStatus();
}

Status ReadRope(const Checkpoint& gguf, const KeyReader& keys, Config& config) {
  ASSIGN_OR_RETURN(config.rope_base, keys.FloatOr("rope.freq_base", 10000.0f, 1.0, 1e12));
  ASSIGN_OR_RETURN(config.rope_dims,
                   keys.IntegerOr("rope.dimension_count", config.head_dim, 2, config.head_dim));
  if (config.rope_dims % 2 != 0) {
    const std::string key = keys.Key("rope.dimension_count");
    return Corrupt(fmt::format("{} is {}, expected an even number", key, config.rope_dims))
        .WithField(key);
  }
  config.rope_pairs =
      config.family == Family::kLlama ? RotaryPairs::kAdjacent : RotaryPairs::kHalves;
  // Older files spell linear scaling rope.scale_linear.
  ASSIGN_OR_RETURN(config.rope_scale, keys.FloatOr("rope.scale_linear", 1.0f, 1e-3, 1e3));
  const std::string key = keys.Key("rope.scaling.type");
  if (!gguf.Has(key)) return base::OkStatus();
  auto type = gguf.Text(key);
  if (!type.ok()) return Corrupt(type.status().message()).WithField(key);
  if (*type == "none") return base::OkStatus();
  if (*type != "linear") {
    return base::Unsupported(fmt::format("{}: only \"none\" and \"linear\" are supported", key))
        .WithField(key);
  }
  ASSIGN_OR_RETURN(config.rope_scale, keys.Float("rope.scaling.factor", 1e-3, 1e3));
  return base::OkStatus();
}

Status ReadHeads(const KeyReader& keys, Config& config) {
  ASSIGN_OR_RETURN(config.heads, keys.Integer("attention.head_count", 1, kHeadsMax));
  ASSIGN_OR_RETURN(config.kv_heads,
                   keys.IntegerOr("attention.head_count_kv", config.heads, 1, config.heads));
  if (config.heads % config.kv_heads != 0) {
    const std::string key = keys.Key("attention.head_count_kv");
    return Corrupt(fmt::format("{} is {}, expected a divisor of the {} heads", key, config.kv_heads,
                               config.heads))
        .WithField(key);
  }
  if (keys.Has("attention.key_length")) {
    ASSIGN_OR_RETURN(config.head_dim, keys.Integer("attention.key_length", 2, kHeadDimMax));
  } else {
    if (config.embedding % config.heads != 0 || config.embedding / config.heads > kHeadDimMax) {
      const std::string key = keys.Key("attention.head_count");
      return Corrupt(fmt::format("{} is {}, which does not divide the embedding of {} into heads "
                                 "of at most {}",
                                 key, config.heads, config.embedding, kHeadDimMax))
          .WithField(key);
    }
    config.head_dim = config.embedding / config.heads;
  }
  ASSIGN_OR_RETURN(const uint32_t value_dim,
                   keys.IntegerOr("attention.value_length", config.head_dim, 1, kHeadDimMax));
  if (value_dim != config.head_dim) {
    const std::string key = keys.Key("attention.value_length");
    return base::Unsupported(fmt::format("{} is {}, but keys have {}: not supported", key,
                                         value_dim, config.head_dim))
        .WithField(key);
  }
  return base::OkStatus();
}

// What only the tensors tell.
Status ReadShapes(const Checkpoint& gguf, const KeyReader& keys, Config& config) {
  const GgufTensor* embedding = gguf.FindTensor("token_embd.weight");
  if (embedding == nullptr) {
    return Corrupt("the model file has no tensor token_embd.weight").WithField("token_embd.weight");
  }
  if (embedding->dims_count != 2 || embedding->dims[0] != config.embedding ||
      embedding->dims[1] > kVocabularyMax) {
    return Corrupt(fmt::format("token_embd.weight is {} x {}, expected {} x at most {}",
                               embedding->dims[0], embedding->dims[1], config.embedding,
                               kVocabularyMax))
        .WithField("token_embd.weight");
  }
  config.vocabulary = static_cast<uint32_t>(embedding->dims[1]);
  ASSIGN_OR_RETURN(const uint32_t vocabulary,
                   keys.IntegerOr("vocab_size", config.vocabulary, 1, kVocabularyMax));
  const auto tokens = gguf.values().find("tokenizer.ggml.tokens");
  const uint64_t token_count = tokens == gguf.values().end() ? 0 : tokens->second.count;
  if (vocabulary != config.vocabulary || token_count > config.vocabulary) {
    return Corrupt(fmt::format("the vocabulary has {} entries and {} tokens, but token_embd.weight "
                               "has {} rows",
                               vocabulary, token_count, config.vocabulary))
        .WithField("token_embd.weight");
  }
  config.tied_output = gguf.FindTensor("output.weight") == nullptr;
  config.qkv_bias = gguf.FindTensor("blk.0.attn_q.bias") != nullptr;
  return base::OkStatus();
}

std::string PrintableName(const Checkpoint& gguf) {
  auto text = gguf.Text("general.name");
  if (!text.ok()) return "";
  std::string name(text->substr(0, 128));
  for (char& c : name) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return name;
}

}  // namespace

Result<Config> ReadConfig(const Checkpoint& gguf) {
  auto architecture = gguf.Text("general.architecture");
  if (!architecture.ok()) {
    return Corrupt(architecture.status().message()).WithField("general.architecture");
  }
  Config config;
  ASSIGN_OR_RETURN(config.family, FamilyOf(*architecture));
  config.architecture = *architecture;
  config.name = PrintableName(gguf);
  const KeyReader keys(gguf, *architecture);
  RETURN_IF_ERROR(RefuseFeatures(gguf, keys));
  ASSIGN_OR_RETURN(config.layers, keys.Integer("block_count", 1, kLayersMax));
  ASSIGN_OR_RETURN(config.context_max, keys.Integer("context_length", 1, kContextMax));
  ASSIGN_OR_RETURN(config.embedding, keys.Integer("embedding_length", 1, kEmbeddingMax));
  ASSIGN_OR_RETURN(config.feed_forward, keys.Integer("feed_forward_length", 1, kFeedForwardMax));
  RETURN_IF_ERROR(ReadHeads(keys, config));
  ASSIGN_OR_RETURN(config.rms_epsilon, keys.Float("attention.layer_norm_rms_epsilon", 0.0, 1.0));
  RETURN_IF_ERROR(ReadRope(gguf, keys, config));
  ASSIGN_OR_RETURN(config.sliding_window,
                   keys.IntegerOr("attention.sliding_window", 0, 0, kContextMax));
  RETURN_IF_ERROR(ReadShapes(gguf, keys, config));
  return config;
}

}  // namespace plumb::model
