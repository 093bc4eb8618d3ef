// engine/sampler_select.cc: the first k candidates and the nucleus, without sorting the vocabulary.
// Block maxima say where large logits can be; what is collected is sorted, so that the result is
// the same as that of sorting everything.
#include <algorithm>
#include <functional>
#include <limits>

#include "base/check.h"
#include "engine/exp_sum.h"
#include "engine/sampler.h"

namespace plumb::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

Sampler::Candidate Sampler::FindCutoff(std::span<const float> logits,
                                       const SamplingParams& params) {
  const bool limits_count = params.top_k > 0 && params.top_k < candidate_count_;
  const bool limits_weight = params.top_p < 1.0f;
  // Held away from infinity: a temperature below 1e-30 leaves the first candidate all the weight.
  const float scale = static_cast<float>(1.0 / std::max(double{params.temperature}, 1e-30));
  if (limits_count) {
    SelectTop(logits, params.top_k, limits_weight);
    return limits_weight ? CutSelected(params.top_p, scale) : candidates_.back();
  }
  if (limits_weight) return CutAll(logits, params.top_p, scale);
  return {-kInfinity, candidate_count_};
}

void Sampler::SelectTop(std::span<const float> logits, uint32_t count, bool sorted) {
  CHECK(count >= 1 && count <= candidate_count_) << count;
  // At least `count` logits reach the count-th largest block maximum.
  float threshold = -kInfinity;
  if (count <= block_max_.size()) {
    block_scratch_ = block_max_;
    const auto nth = block_scratch_.begin() + (count - 1);
    std::nth_element(block_scratch_.begin(), nth, block_scratch_.end(), std::greater<>());
    threshold = *nth;
  }
  CollectFrom(logits, threshold);
  CHECK(candidates_.size() >= count);
  // Leaves the last kept candidate at the back, in order or not.
  std::nth_element(candidates_.begin(), candidates_.begin() + (count - 1), candidates_.end(),
                   Before);
  candidates_.resize(count);
  if (sorted) std::sort(candidates_.begin(), candidates_.end(), Before);
}

void Sampler::CollectFrom(std::span<const float> logits, float threshold) {
  candidates_.clear();
  for (uint32_t index = 0; index < block_max_.size(); ++index) {
    if (block_max_[index] < threshold) continue;
    const auto block = Block(logits, index);
    for (uint32_t i = 0; i < block.size(); ++i) {
      if (block[i] >= threshold) candidates_.push_back({block[i], index * kNoiseBlock + i});
    }
  }
}

Sampler::Candidate Sampler::CutSelected(float top_p, float scale) const {
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    total += ExpNegative((candidate.logit - top_) * scale);
  }
  double sum = 0;
  for (const Candidate& candidate : candidates_) {
    sum += ExpNegative((candidate.logit - top_) * scale);
    if (sum >= top_p * total) return candidate;
  }
  return candidates_.back();
}

Sampler::Candidate Sampler::CutAll(std::span<const float> logits, float top_p, float scale) {
  const auto candidates = logits.first(candidate_count_);
  const double wanted = top_p * ExpSum(candidates, top_, scale, weights_.data());
  // Ever lower thresholds, until what lies above one surely holds the wanted weight. In units of
  // ln(weight): e^-3 holds most sharp distributions' nuclei, the last is everything.
  for (const double depth : {3.0, 6.0, 12.0, 24.0, double{kInfinity}}) {
    const float threshold = static_cast<float>(double{top_} - depth / scale);
    CollectFrom(logits, threshold);
    double collected = 0;
    for (const Candidate& candidate : candidates_) collected += weights_[candidate.token];
    // The margin covers that this sum and the ordered one below round differently.
    if (collected < wanted * (1 + 1e-9) && depth < kInfinity) continue;
    std::sort(candidates_.begin(), candidates_.end(), Before);
    double sum = 0;
    for (const Candidate& candidate : candidates_) {
      sum += weights_[candidate.token];
      if (sum >= wanted) return candidate;
    }
  }
  return candidates_.back();
}

}  // namespace plumb::engine
