// engine/sampler_reference.h
// The sampler once more, as its header defines it and as slowly: sorts the whole vocabulary, draws
// noise for every kept token. For tests only; it shares nothing with the fast one but exp and
// noise.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/exp_sum.h"
#include "engine/noise.h"
#include "engine/request.h"

namespace plumb::engine {

struct ReferenceCandidate {
  float logit;
  uint32_t token;
};

// Adjusted logits of the first `candidate_count` tokens, all that the mask allows (empty: all of
// them) but those of `never`, in order.
inline std::vector<ReferenceCandidate> ReferenceOrder(
    std::span<const float> logits, uint32_t candidate_count, const SamplingParams& params,
    std::span<const TokenId> prompt, std::span<const TokenId> generated,
    std::span<const uint32_t> mask = {}, std::span<const TokenId> never = {}) {
  const auto to_float = [](double value) {
    return static_cast<float>(std::clamp(value, -double{FLT_MAX}, double{FLT_MAX}));
  };
  std::vector<ReferenceCandidate> order;
  for (uint32_t token = 0; token < candidate_count; ++token) {
    if (!mask.empty() && (mask[token / 32] >> (token % 32) & 1) == 0) continue;
    if (std::find(never.begin(), never.end(), TokenId{token}) != never.end()) continue;
    const auto count = std::count(generated.begin(), generated.end(), TokenId{token});
    const auto in_prompt = std::count(prompt.begin(), prompt.end(), TokenId{token});
    double value = logits[token];
    if (count + in_prompt > 0) {
      const double repetition = params.repetition_penalty;
      value = value > 0 ? value / repetition : value * repetition;
    }
    if (count > 0) {
      value -= params.presence_penalty;
      value -= double{params.frequency_penalty} * static_cast<double>(count);
    }
    float adjusted = to_float(value);
    for (const LogitBias& bias : params.logit_bias) {
      if (base::Index(bias.token) == token) adjusted = to_float(double{adjusted} + bias.bias);
    }
    order.push_back({adjusted, token});
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  return order;
}

inline uint32_t ReferenceSample(std::span<const float> logits, uint32_t candidate_count,
                                const SamplingParams& params, std::span<const TokenId> prompt,
                                std::span<const TokenId> generated, const NoiseKey& key,
                                std::span<const uint32_t> mask = {},
                                std::span<const TokenId> never = {}) {
  auto order = ReferenceOrder(logits, candidate_count, params, prompt, generated, mask, never);
  if (params.temperature == 0) return order[0].token;
  const float top = order[0].logit;
  const double temperature = params.temperature;
  if (params.top_k > 0 && params.top_k < order.size()) order.resize(params.top_k);
  if (params.top_p < 1) {
    const float scale = static_cast<float>(1.0 / std::max(temperature, 1e-30));
    const auto weight = [&](const ReferenceCandidate& candidate) {
      return double{Weight((candidate.logit - top) * scale)};
    };
    double total = 0, sum = 0;
    for (const auto& candidate : order) total += weight(candidate);
    size_t kept = 0;
    while (kept < order.size() && sum < params.top_p * total) sum += weight(order[kept++]);
    order.resize(kept);
  }
  double best_score = -HUGE_VAL;
  uint32_t best = UINT32_MAX;
  for (const auto& [logit, token] : order) {
    const double d = (double{logit} - double{top}) / temperature;
    if (params.min_p > 0 && d < std::log(double{params.min_p})) continue;
    const double score = d + Gumbel(DrawToken(key, DrawBlock(key, token / kNoiseBlock), token));
    if (score > best_score) {
      best_score = score;
      best = token;
    }
  }
  return best;
}

}  // namespace plumb::engine
