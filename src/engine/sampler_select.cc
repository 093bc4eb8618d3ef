// engine/sampler_select.cc: the first k candidates and the nucleus, without sorting the vocabulary.
// Block maxima say where large logits can be; what is collected is sorted, so that the result is
// the same as that of sorting everything.
#include <algorithm>
#include <functional>
#include <limits>

#include "base/check.h"
#include "engine/sampler.h"

namespace plumb::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

// Never smaller for a smaller logit, since float operations keep order.
uint32_t Sampler::BucketOf(float x) {
  const float bucket = -x * kBucketsPerUnit;
  return bucket < kBuckets - 1 ? static_cast<uint32_t>(bucket) : kBuckets - 1;
}

Sampler::Candidate Sampler::FindCutoff(std::span<const float> logits,
                                       const SamplingParams& params) {
  const bool limits_count = params.top_k > 0 && params.top_k < candidate_count_;
  const bool limits_weight = params.top_p < 1.0f;
  // Held away from infinity: a temperature below 1e-30 leaves the first candidate all the weight.
  const float scale = static_cast<float>(1.0 / std::max(double{params.temperature}, 1e-30));
  if (limits_count) {
    SelectTop(logits, params.top_k, false);
    if (!limits_weight) return candidates_.back();
    double total = 0;
    for (const Candidate& candidate : candidates_) {
      total += Weight((candidate.logit - top_) * scale);
    }
    return CutCandidates(params.top_p * total, scale);
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

Sampler::Candidate Sampler::CutAll(std::span<const float> logits, float top_p, float scale) {
  const double wanted =
      top_p * exp_.weight_sum(logits.data(), candidate_count_, top_, scale, weights_.data());
  // Sharp distributions, the usual case: a few candidates hold the nucleus.
  constexpr double kSharpDepth = 4;  // weights down to e^-4
  constexpr size_t kSharpMax = 1024;
  CollectFrom(logits, static_cast<float>(double{top_} - kSharpDepth / scale));
  double collected = 0;
  for (const Candidate& candidate : candidates_) collected += weights_[candidate.token];
  if (collected >= wanted && candidates_.size() <= kSharpMax) return CutCandidates(wanted, scale);

  // Flat ones: sums by intervals of ln(weight), then the interval where the nucleus ends is sorted.
  bucket_sums_.assign(kBuckets, 0);
  for (uint32_t token = 0; token < candidate_count_; ++token) {
    bucket_sums_[BucketOf((logits[token] - top_) * scale)] += weights_[token];
  }
  uint32_t bucket = 0;
  double above = 0;
  while (bucket + 1 < kBuckets && above + bucket_sums_[bucket] < wanted) {
    above += bucket_sums_[bucket++];
  }
  candidates_.clear();
  for (uint32_t token = 0; token < candidate_count_; ++token) {
    if (BucketOf((logits[token] - top_) * scale) == bucket) {
      candidates_.push_back({logits[token], token});
    }
  }
  return CutCandidates(wanted - above, scale);
}

Sampler::Candidate Sampler::CutCandidates(double wanted, float scale) {
  std::sort(candidates_.begin(), candidates_.end(), Before);
  double sum = 0;
  for (const Candidate& candidate : candidates_) {
    sum += Weight((candidate.logit - top_) * scale);
    if (sum >= wanted) return candidate;
  }
  return candidates_.back();
}

}  // namespace plumb::engine
