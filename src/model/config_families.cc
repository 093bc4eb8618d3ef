// model/config_families.cc
// Where families differ: experts, windows, scales, and which features of other models are refused.
// Keys and their defaults: as GGUF files by llama.cpp's converter have them; `expert_weights_norm`
// and a list in `sliding_window_pattern` come from safetensors models.
#include <algorithm>
#include <cmath>
#include <vector>

#include "model/config_keys.h"

namespace plumb::model {

using base::Corrupt;
using base::Status;

namespace {

constexpr uint32_t kGemma3Period = 6;  // every 6th layer of Gemma 3 sees all positions
constexpr float kGemma3LocalBase = 10000.0f;
// Gemma 3 27B scales scores by its width per head, not by the head's own; only its depth tells it.
constexpr uint32_t kGemma3LayersOf27B = 62;

constexpr std::string_view kRefused[] = {
    "expert_shared_count",
    "expert_group_count",
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

bool Allowed(std::string_view name, Family family) {
  if (family != Family::kGemma3) return false;
  return name == "attention.scale" || name == "final_logit_softcapping";
}

bool HasExperts(Family family) { return family == Family::kMixtral || family == Family::kQwen3Moe; }

Status RefuseKey(const std::string& key) {
  return base::Unsupported(fmt::format("{} asks for a feature that is not supported", key))
      .WithField(key);
}

}  // namespace

Status RefuseFeatures(const Checkpoint& gguf, const KeyReader& keys, Family family) {
  for (const std::string_view name : kRefused) {
    if (!keys.Has(name) || Allowed(name, family)) continue;
    auto value = gguf.Number(keys.Key(name));
    if (!value.ok() || *value != 0.0) return RefuseKey(keys.Key(name));  // 0: harmless
  }
  // Where experts are known, other ways of weighing them are not.
  constexpr std::string_view kNeutralAtOne[] = {"expert_gating_func", "expert_weights_scale"};
  for (const std::string_view name : kNeutralAtOne) {  // 1: softmax; a factor of 1
    if (!keys.Has(name)) continue;
    auto value = gguf.Number(keys.Key(name));
    if (!value.ok() || (*value != 0.0 && *value != 1.0)) return RefuseKey(keys.Key(name));
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

Status ReadExperts(const KeyReader& keys, Config& config) {
  ASSIGN_OR_RETURN(config.experts, keys.IntegerOr("expert_count", 0, 0, kExpertsMax));
  if (config.family == Family::kLlama && config.experts > 0) config.family = Family::kMixtral;
  const bool has_experts = HasExperts(config.family);
  if (!has_experts && config.experts > 0) return RefuseKey(keys.Key("expert_count"));
  const uint32_t used_max = std::min(config.experts, kExpertsUsedMax);
  if (!has_experts) {
    ASSIGN_OR_RETURN(config.experts_used, keys.IntegerOr("expert_used_count", 0, 0, 0));
    return base::OkStatus();
  }
  ASSIGN_OR_RETURN(config.experts, keys.Integer("expert_count", 1, kExpertsMax));
  ASSIGN_OR_RETURN(config.experts_used, keys.Integer("expert_used_count", 1, used_max));
  ASSIGN_OR_RETURN(config.expert_norm, keys.BoolOr("expert_weights_norm", true));
  return base::OkStatus();
}

Status ReadFeedForward(const KeyReader& keys, Config& config) {
  const bool own_width = HasExperts(config.family) && keys.Has("expert_feed_forward_length");
  const std::string_view name = own_width ? "expert_feed_forward_length" : "feed_forward_length";
  ASSIGN_OR_RETURN(config.feed_forward, keys.Integer(name, 1, kFeedForwardMax));
  return base::OkStatus();
}

Status ReadWindows(const Checkpoint& gguf, const KeyReader& keys, Config& config) {
  ASSIGN_OR_RETURN(config.sliding_window,
                   keys.IntegerOr("attention.sliding_window", 0, 0, kContextMax));
  config.layer_windows.assign(config.layers, config.sliding_window);
  if (config.family == Family::kGemma3) {
    ASSIGN_OR_RETURN(config.rope_base_local,
                     keys.FloatOr("rope.freq_base_swa", kGemma3LocalBase, 1.0, 1e12));
  }
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const std::string key = keys.Key(kPattern);
  const auto pattern = gguf.values().find(key);
  if (pattern != gguf.values().end() && pattern->second.type == GgufType::kArray) {
    auto windowed = gguf.Integers(key);  // for each layer, whether it has the window
    if (!windowed.ok()) return Corrupt(windowed.status().message()).WithField(key);
    if (windowed->size() != config.layers) {
      return Corrupt(fmt::format("{} has {} entries for {} layers", key, windowed->size(),
                                 config.layers))
          .WithField(key);
    }
    for (uint32_t i = 0; i < config.layers; ++i) {
      if ((*windowed)[i] == 0) config.layer_windows[i] = 0;
    }
    return base::OkStatus();
  }
  if (config.family == Family::kGemma3) {
    ASSIGN_OR_RETURN(const uint32_t period, keys.IntegerOr(kPattern, kGemma3Period, 1, kLayersMax));
    for (uint32_t i = period - 1; i < config.layers; i += period) config.layer_windows[i] = 0;
    return base::OkStatus();
  }
  // Qwen applies its window only to the upper layers, and a GGUF file does not say from which on.
  const bool qwen = config.family != Family::kLlama && config.family != Family::kMixtral;
  config.windows_unknown =
      qwen && config.sliding_window != 0 && config.sliding_window < config.context_max;
  return base::OkStatus();
}

Status ReadScales(const KeyReader& keys, Config& config) {
  uint32_t scaled_width = config.head_dim;
  if (config.family == Family::kGemma3 && config.layers == kGemma3LayersOf27B) {
    scaled_width = config.embedding / config.heads;
  }
  config.attention_scale = 1.0f / std::sqrt(static_cast<float>(std::max(scaled_width, 1u)));
  if (config.family != Family::kGemma3) return base::OkStatus();
  ASSIGN_OR_RETURN(config.attention_scale,
                   keys.FloatOr("attention.scale", config.attention_scale, 1e-6, 1e3));
  ASSIGN_OR_RETURN(config.final_soft_cap, keys.FloatOr("final_logit_softcapping", 0.0f, 0.0, 1e6));
  return base::OkStatus();
}

}  // namespace plumb::model
