// engine/sampler.cc
// Scan, describe, edit, race, undo. Read next: sampler_select.cc, which selects candidates.
#include "engine/sampler.h"

#include <sleef.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace plumb::engine {
namespace {

// Far above the rounding of a score that could win (|score| < 100), far below what matters: a bound
// that is this much short is short.
constexpr double kBoundSlack = 1e-9;

// Raw logits are finite, and so are edited ones.
constexpr float kMaskedOut = -std::numeric_limits<float>::infinity();

base::Status NotFinite() {
  return base::Internal("the model gave logits that are not finite; the answer cannot go on");
}

float ToFiniteFloat(double value) {
  return static_cast<float>(std::clamp(value, -double{FLT_MAX}, double{FLT_MAX}));
}

// The largest of `values` and whether all are finite, in 16 lanes so that the compiler makes
// vectors.
struct MaxAndFinite {
  float max;
  bool finite;
};
MaxAndFinite ScanMax(std::span<const float> values) {
  constexpr size_t kLanes = 16;
  float max[kLanes], zero[kLanes];
  std::fill_n(max, kLanes, -std::numeric_limits<float>::infinity());
  std::fill_n(zero, kLanes, 0.0f);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      max[lane] = value > max[lane] ? value : max[lane];
      zero[lane] += value * 0.0f;  // not a number unless the value is finite
    }
  }
  for (; i < values.size(); ++i) {
    max[0] = std::max(max[0], values[i]);
    zero[0] += values[i] * 0.0f;
  }
  MaxAndFinite result{max[0], true};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    result.max = std::max(result.max, max[lane]);
    result.finite = result.finite && zero[lane] == 0.0f;
  }
  return result;
}

}  // namespace

bool UsesPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f ||
         params.frequency_penalty != 0.0f;
}

Sampler::Sampler(uint32_t vocabulary_size, uint32_t candidate_count, std::span<const TokenId> never)
    : vocabulary_size_(vocabulary_size), candidate_count_(candidate_count), exp_(BestExpKernels()) {
  CHECK(vocabulary_size <= kVocabularySizeMax) << "sums of weights would not be exact";
  CHECK(candidate_count >= 1 && candidate_count <= vocabulary_size)
      << candidate_count << " of " << vocabulary_size;
  const size_t blocks = (candidate_count + kNoiseBlock - 1) / kNoiseBlock;
  block_max_.resize(blocks);
  block_scratch_.resize(blocks);
  block_edited_.resize(blocks);
  weights_.resize(candidate_count);
  bucket_sums_.resize(kBuckets);
  candidates_.reserve(candidate_count);
  edits_.reserve(size_t{vocabulary_size} + kLogitBiasMax);
  for (const TokenId token : never) {
    if (base::Index(token) < candidate_count) never_.push_back({base::Index(token), 0});
  }
  CHECK(CanSample(candidate_count, never)) << "nothing is left to sample";
}

bool Sampler::CanSample(uint32_t candidate_count, std::span<const TokenId> never) {
  const auto taken = std::count_if(never.begin(), never.end(), [&](TokenId token) {
    return base::Index(token) < candidate_count;
  });
  return static_cast<uint64_t>(taken) < candidate_count;
}

void Sampler::Sample(std::span<float> logits, const SamplingParams& params,
                     const TokenCounts& counts, const NoiseKey& key, SampleResult& result,
                     std::span<const uint32_t> mask) {
  CHECK(logits.size() == vocabulary_size_) << logits.size();
  if (!Scan(logits)) {
    result.status = NotFinite();
    return;
  }
  result.status = base::OkStatus();
  result.top_count = 0;
  double log_sum = 0;
  if (params.logprobs) log_sum = LogSumExp(logits);
  Hide(logits);
  if (params.logprobs) ListTop(logits, log_sum, params.top_logprobs, result);
  uint32_t token = 0;
  if (mask.empty()) {
    token = Choose(logits, params, counts, key);
  } else if (Mask(logits, mask)) {
    token = Choose(masked_, params, counts, key);
  } else {
    result.status = base::Unsupported("the grammar allows no token here; the answer cannot go on");
  }
  Reveal(logits);
  if (!result.status.ok()) return;
  CHECK(token < candidate_count_) << token;
  result.token = TokenId{token};
  if (params.logprobs) result.logprob = static_cast<float>(logits[token] - log_sum);
}

void Sampler::Describe(std::span<float> logits, TokenId token, uint32_t top_count,
                       SampleResult& result) {
  CHECK(logits.size() == vocabulary_size_ && base::Index(token) < vocabulary_size_);
  if (!Scan(logits)) {
    result.status = NotFinite();
    return;
  }
  result.status = base::OkStatus();
  result.top_count = 0;
  const double log_sum = LogSumExp(logits);
  Hide(logits);
  ListTop(logits, log_sum, top_count, result);
  Reveal(logits);
  result.token = token;
  result.logprob = static_cast<float>(logits[base::Index(token)] - log_sum);
}

bool Sampler::Mask(std::span<const float> logits, std::span<const uint32_t> mask) {
  CHECK(mask.size() == (vocabulary_size_ + 31) / 32) << mask.size();
  masked_.resize(vocabulary_size_);
  // Padding is no candidate whatever the mask says of it; it stays where edits may touch it.
  for (uint32_t token = 0; token < vocabulary_size_; ++token) {
    const bool allowed = (mask[token / 32] >> (token % 32) & 1) != 0;
    masked_[token] = allowed ? logits[token] : kMaskedOut;
  }
  for (uint32_t block = 0; block < block_max_.size(); ++block) {
    block_max_[block] = ScanMax(Block(masked_, block)).max;
  }
  FindTop();
  return top_ != kMaskedOut;
}

uint32_t Sampler::Choose(std::span<float> logits, const SamplingParams& params,
                         const TokenCounts& counts, const NoiseKey& key) {
  ApplyEdits(logits, params, counts);
  const uint32_t token = params.temperature == 0.0f ? Greedy(logits) : Race(logits, params, key);
  UndoEdits(logits);
  return token;
}

bool Sampler::Scan(std::span<const float> logits) {
  bool finite = true;
  for (uint32_t block = 0; block < block_max_.size(); ++block) {
    const MaxAndFinite scan = ScanMax(Block(logits, block));
    block_max_[block] = scan.max;
    finite = finite && scan.finite;
  }
  FindTop();
  const MaxAndFinite padding = ScanMax(logits.subspan(candidate_count_));
  raw_max_ = std::max(top_, padding.max);
  return finite && padding.finite;
}

void Sampler::FindTop() {
  const auto top = std::max_element(block_max_.begin(), block_max_.end());
  top_ = *top;
  top_block_ = static_cast<uint32_t>(top - block_max_.begin());
}

void Sampler::Hide(std::span<float> logits) {
  if (never_.empty()) return;
  for (Edit& hidden : never_) {
    hidden.raw = logits[hidden.token];
    logits[hidden.token] = kMaskedOut;
  }
  for (const Edit& hidden : never_) {
    const uint32_t block = hidden.token / kNoiseBlock;
    block_max_[block] = ScanMax(Block(logits, block)).max;
  }
  FindTop();
}

void Sampler::Reveal(std::span<float> logits) const {
  for (const Edit& hidden : never_) logits[hidden.token] = hidden.raw;
}

double Sampler::LogSumExp(std::span<const float> logits) const {
  return raw_max_ + Sleef_cinz_logd1_u10purec(exp_.exp_sum(logits.data(), logits.size(), raw_max_));
}

void Sampler::ListTop(std::span<const float> logits, double log_sum, uint32_t count,
                      SampleResult& result) {
  if (count == 0) return;
  const size_t most = candidate_count_ - never_.size();
  SelectTop(logits, static_cast<uint32_t>(std::min<size_t>(count, most)), true);
  for (const Candidate& candidate : candidates_) {
    result.top[result.top_count++] = {TokenId{candidate.token},
                                      static_cast<float>(candidate.logit - log_sum)};
  }
}

void Sampler::ApplyEdits(std::span<float> logits, const SamplingParams& params,
                         const TokenCounts& counts) {
  edits_.clear();
  if (UsesPenalties(params)) {
    const double repetition = params.repetition_penalty;
    for (const TokenCounts::Entry& entry : counts.entries()) {
      const double raw = logits[base::Index(entry.token)];
      double value = raw > 0 ? raw / repetition : raw * repetition;
      if (entry.generated > 0) {
        value -= params.presence_penalty;
        value -= double{params.frequency_penalty} * entry.generated;
      }
      ApplyEdit(logits, base::Index(entry.token), value);
    }
  }
  for (const LogitBias& bias : params.logit_bias) {
    const uint32_t token = base::Index(bias.token);
    ApplyEdit(logits, token, double{logits[token]} + bias.bias);
  }
  if (edits_.empty()) return;
  for (uint32_t block = 0; block < block_max_.size(); ++block) {
    if (!block_edited_[block]) continue;
    block_edited_[block] = 0;
    block_max_[block] = ScanMax(Block(logits, block)).max;
  }
  FindTop();
}

void Sampler::ApplyEdit(std::span<float> logits, uint32_t token, double value) {
  CHECK(token < vocabulary_size_ && edits_.size() < edits_.capacity()) << token;
  if (logits[token] == kMaskedOut) return;
  edits_.push_back({token, logits[token]});
  logits[token] = ToFiniteFloat(value);
  if (token < candidate_count_) block_edited_[token / kNoiseBlock] = 1;
}

void Sampler::UndoEdits(std::span<float> logits) {
  // Backwards: a token may have been edited twice.
  for (; !edits_.empty(); edits_.pop_back()) logits[edits_.back().token] = edits_.back().raw;
}

uint32_t Sampler::Greedy(std::span<const float> logits) const {
  const auto block = Block(logits, top_block_);
  const auto place = std::find(block.begin(), block.end(), top_);
  return top_block_ * kNoiseBlock + static_cast<uint32_t>(place - block.begin());
}

uint32_t Sampler::Race(std::span<const float> logits, const SamplingParams& params,
                       const NoiseKey& key) {
  const Candidate cutoff = FindCutoff(logits, params);
  const double temperature = params.temperature;
  const double d_min = params.min_p > 0.0f ? Sleef_cinz_logd1_u10purec(params.min_p)
                                           : -std::numeric_limits<double>::infinity();
  const auto scaled = [&](float logit) { return (double{logit} - double{top_}) / temperature; };

  double best_score = -std::numeric_limits<double>::infinity();
  Candidate best{};
  const auto race_block = [&](uint32_t index) {
    const double block_d = scaled(block_max_[index]);
    if (block_max_[index] < cutoff.logit || block_d < d_min) return;
    const BlockNoise noise = DrawBlock(key, index);
    const double noise_max = Gumbel(noise.time) + kBoundSlack;
    if (block_d + noise_max < best_score) return;
    const auto block = Block(logits, index);
    for (uint32_t i = 0; i < block.size(); ++i) {
      const Candidate candidate{block[i], index * kNoiseBlock + i};
      const double d = scaled(candidate.logit);
      if (d + noise_max < best_score || d < d_min || Before(cutoff, candidate)) continue;
      const double score = d + Gumbel(DrawToken(key, noise, candidate.token));
      if (score > best_score || (score == best_score && Before(candidate, best))) {
        best_score = score;
        best = candidate;
      }
    }
  };
  // The likeliest block first: a good score early lets the others be skipped.
  race_block(top_block_);
  for (uint32_t index = 0; index < block_max_.size(); ++index) {
    if (index != top_block_) race_block(index);
  }
  CHECK(best_score > -std::numeric_limits<double>::infinity()) << "every filter keeps the first";
  return best.token;
}

std::span<const float> Sampler::Block(std::span<const float> logits, uint32_t block) const {
  const uint32_t first = block * kNoiseBlock;
  return logits.subspan(first, std::min(kNoiseBlock, candidate_count_ - first));
}

}  // namespace plumb::engine
