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

#include "model/config_keys.h"
#include "model/families/deepseek_v41_config.h"

namespace plumb::model {
namespace {

using base::Code;
using base::Corrupt;
using base::Result;
using base::Status;

Result<Family> FamilyOf(std::string_view architecture) {
  if (architecture == "llama") return Family::kLlama;  // or kMixtral, see ReadExperts
  if (architecture == "qwen2") return Family::kQwen2;
  if (architecture == "qwen3") return Family::kQwen3;
  if (architecture == "qwen3moe") return Family::kQwen3Moe;
  if (architecture == "gemma3") return Family::kGemma3;
  std::string shown(architecture.substr(0, 40));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return base::Unsupported(
             fmt::format("general.architecture \"{}\" is not supported (llama, qwen2, "
                         "qwen3, qwen3moe and gemma3 are)",
                         shown))
      .WithField("general.architecture");
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
  const bool llama = config.family == Family::kLlama || config.family == Family::kMixtral;
  config.rope_pairs = llama ? RotaryPairs::kAdjacent : RotaryPairs::kHalves;
  // Older files spell linear scaling rope.scale_linear.
  ASSIGN_OR_RETURN(config.rope_scale, keys.FloatOr("rope.scale_linear", 1.0f, 1e-3, 1e3));
  const std::string key = keys.Key("rope.scaling.type");
  if (!gguf.Has(key)) {
    // A factor alone means linear scaling, as in llama.cpp.
    ASSIGN_OR_RETURN(config.rope_scale,
                     keys.FloatOr("rope.scaling.factor", config.rope_scale, 1e-3, 1e3));
    return base::OkStatus();
  }
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

// Every layer has the biases that the first has, and no other: a bias that some layers lack was
// lost.
Status ReadBiases(const Checkpoint& gguf, Config& config) {
  struct Bias {
    const char* name;
    bool wanted;
    const char* first;  // the tensor that decides
  };
  constexpr const char* kQuery = "blk.0.attn_q.bias";
  constexpr const char* kOutput = "blk.0.attn_output.bias";
  config.qkv_bias = gguf.FindTensor(kQuery) != nullptr;
  config.output_bias = gguf.FindTensor(kOutput) != nullptr;
  const Bias biases[] = {{"attn_q.bias", config.qkv_bias, kQuery},
                         {"attn_k.bias", config.qkv_bias, kQuery},
                         {"attn_v.bias", config.qkv_bias, kQuery},
                         {"attn_output.bias", config.output_bias, kOutput}};
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    for (const Bias& bias : biases) {
      const std::string name = fmt::format("blk.{}.{}", layer, bias.name);
      const bool found = gguf.FindTensor(name) != nullptr;
      if (found == bias.wanted) continue;
      const auto state = [](bool there) { return there ? "there" : "missing"; };
      return Corrupt(fmt::format("tensor {} is {}, but {} is {}: either every layer has its biases "
                                 "or none; the model file is damaged",
                                 name, state(found), bias.first, state(bias.wanted)))
          .WithField(name);
    }
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
  return ReadBiases(gguf, config);
}

// One of several files of a model has only some of its tensors.
Status RefuseSplit(const Checkpoint& gguf) {
  constexpr std::string_view kKey = "split.count";
  if (!gguf.Has(kKey)) return base::OkStatus();
  const auto count = gguf.Unsigned(kKey);
  if (!count.ok()) return Corrupt(count.status().message()).WithField(std::string(kKey));
  if (*count <= 1) return base::OkStatus();
  return base::Unsupported(fmt::format("split.count: this is one of {} files that make up the "
                                       "model; join them first (llama-gguf-split --merge)",
                                       *count))
      .WithField(std::string(kKey));
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

Result<Config> DeepseekSummary(const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const DeepseekConfig own, ReadDeepseekConfig(checkpoint));
  Config config;
  config.family = Family::kDeepseekV41;
  config.architecture = kDeepseekArchitecture;
  config.name = own.name;
  config.layers = own.layer_count;
  config.embedding = own.hidden;
  config.feed_forward = own.expert_width;
  config.heads = own.heads;
  config.kv_heads = 1;
  config.head_dim = own.head_dim;
  config.vocabulary = own.vocabulary;
  config.context_max = own.context_max;
  config.rms_epsilon = own.rms_epsilon;
  config.rope_dims = own.rope_dims;
  config.experts = own.experts;
  config.experts_used = own.experts_used;
  return config;
}

}  // namespace

Result<Config> ReadConfig(const Checkpoint& gguf) {
  auto architecture = gguf.Text("general.architecture");
  if (!architecture.ok()) {
    return Corrupt(architecture.status().message()).WithField("general.architecture");
  }
  if (*architecture == kDeepseekArchitecture) return DeepseekSummary(gguf);
  RETURN_IF_ERROR(RefuseSplit(gguf));
  Config config;
  ASSIGN_OR_RETURN(config.family, FamilyOf(*architecture));
  config.architecture = *architecture;
  config.name = PrintableName(gguf);
  const KeyReader keys(gguf, *architecture);
  RETURN_IF_ERROR(ReadExperts(keys, config));  // decides between llama and Mixtral
  RETURN_IF_ERROR(RefuseFeatures(gguf, keys, config.family));
  ASSIGN_OR_RETURN(config.layers, keys.Integer("block_count", 1, kLayersMax));
  ASSIGN_OR_RETURN(config.context_max, keys.Integer("context_length", 1, kContextMax));
  ASSIGN_OR_RETURN(config.embedding, keys.Integer("embedding_length", 1, kEmbeddingMax));
  RETURN_IF_ERROR(ReadFeedForward(keys, config));
  RETURN_IF_ERROR(ReadHeads(keys, config));
  ASSIGN_OR_RETURN(config.rms_epsilon, keys.Float("attention.layer_norm_rms_epsilon", 0.0, 1.0));
  RETURN_IF_ERROR(ReadRope(gguf, keys, config));
  RETURN_IF_ERROR(ReadWindows(gguf, keys, config));
  RETURN_IF_ERROR(ReadScales(keys, config));
  RETURN_IF_ERROR(ReadShapes(gguf, keys, config));
  return config;
}

}  // namespace plumb::model
