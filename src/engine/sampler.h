// engine/sampler.h
// Logits to the next token. Exact: the token is a function of the logits, the parameters, the
// sequence's token counts and the noise key; the shortcuts here (block maxima, partial selection,
// noise bounds) give what sorting and drawing for the whole vocabulary gives.
// Read next: engine/noise.h, engine/exp_sum.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/exp_sum.h"
#include "engine/noise.h"
#include "engine/request.h"
#include "engine/token_counts.h"

namespace plumb::engine {

struct SampleResult {
  base::Status status;  // not ok: there is no token
  TokenId token{};
  float logprob = 0;  // this and top: only with params.logprobs
  uint32_t top_count = 0;
  std::array<TopLogprob, kTopLogprobsMax> top{};  // [top_count]
};

// Larger vocabularies are refused: sums of weights would no longer be exact (exp_sum.h).
constexpr uint32_t kVocabularySizeMax = 1u << 20;

// Whether `counts` matter for these parameters.
bool UsesPenalties(const SamplingParams& params);

// In detail:
//   adjusted logit, f32  a = raw; when the token was seen: a > 0 ? a / repetition : a * repetition;
//                        when generated c > 0 times: a - presence, then a - frequency * c (in f64,
//                        rounded once, held within the finite floats); then a + bias likewise
//   order                a descending, then id ascending
//   d, f64               (a - largest a) / temperature
//   weight, f32          exp(d), in multiples of 2^-32: sums are exact in any order
//   mask                 only the tokens it allows are in the order; none but their adjusted logits
//                        count from here on. Tokens that are never sampled are masked always
//   top_k, top_p, min_p  the first k; of those the shortest prefix with top_p of their weight; of
//                        those the ones with d >= log(min_p)
//   token                the largest d + Gumbel noise (engine/noise.h), ties by the order above
// Holds scratch memory, allocated once. Thread: one at a time (engine).
class Sampler {
 public:
  // `vocabulary_size` logits a row; only the first `candidate_count` ids may be sampled (a model's
  // rows beyond its tokenizer are padding), without those of `never`, each of
  // which stands there once; some must be left (CHECK). What may not be sampled is no alternative
  // either, and counts in the log-probabilities of what may: those are of the model's own
  // distribution.
  Sampler(uint32_t vocabulary_size, uint32_t candidate_count, std::span<const TokenId> never = {});
  // Whether some id would be left.
  static bool CanSample(uint32_t candidate_count, std::span<const TokenId> never);

  // `params` in the ranges of request.h, their token ids below vocabulary_size. `logits`
  // [vocabulary_size] is used as scratch and is as before on return. `mask`: empty, or bit t % 32
  // of word t / 32 says whether token t is allowed, [vocabulary_size bits, rounded up]; the
  // log-probabilities do not depend on it.
  // result.status kInternal: a logit is infinite or not a number; kUnsupported: the mask allows no
  // candidate.
  void Sample(std::span<float> logits, const SamplingParams& params, const TokenCounts& counts,
              const NoiseKey& key, SampleResult& result, std::span<const uint32_t> mask = {});

  // The log-probability of `token` and `top_count` alternatives, as Sample describes what it chose.
  // `token` may be one that is never sampled. `logits` as for Sample.
  void Describe(std::span<float> logits, TokenId token, uint32_t top_count, SampleResult& result);

 private:
  struct Candidate {
    float logit;
    uint32_t token;
  };
  static bool Before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  }
  struct Edit {
    uint32_t token;
    float raw;
  };

  // Fills block_max_, top_ and raw_max_; false: not all are finite.
  bool Scan(std::span<const float> logits);
  void FindTop();
  // Puts negative infinity in the place of the logits that are never sampled, and back.
  void Hide(std::span<float> logits);
  void Reveal(std::span<float> logits) const;
  // Log-probabilities are of the raw logits: this before Hide, ListTop after it; edits come later.
  double LogSumExp(std::span<const float> logits) const;
  void ListTop(std::span<const float> logits, double log_sum, uint32_t count, SampleResult& result);

  // Copies into masked_ what `mask` allows, and negative infinity for the rest, whose block maxima
  // then follow. False: nothing is allowed.
  bool Mask(std::span<const float> logits, std::span<const uint32_t> mask);
  // `logits` edited, sampled from, and as before.
  uint32_t Choose(std::span<float> logits, const SamplingParams& params, const TokenCounts& counts,
                  const NoiseKey& key);

  void ApplyEdits(std::span<float> logits, const SamplingParams& params, const TokenCounts& counts);
  void ApplyEdit(std::span<float> logits, uint32_t token, double value);
  void UndoEdits(std::span<float> logits);

  // Fills candidates_ with the first `count` in order; sorted only when asked for.
  void SelectTop(std::span<const float> logits, uint32_t count, bool sorted);
  void CollectFrom(std::span<const float> logits, float threshold);
  // The last candidate that top_k and top_p keep; every filter keeps a prefix of the order.
  Candidate FindCutoff(std::span<const float> logits, const SamplingParams& params);
  Candidate CutAll(std::span<const float> logits, float top_p, float scale);
  // Sorts candidates_; the first at which the sum of weights reaches `wanted`, else the last.
  Candidate CutCandidates(double wanted, float scale);

  uint32_t Greedy(std::span<const float> logits) const;
  uint32_t Race(std::span<const float> logits, const SamplingParams& params, const NoiseKey& key);

  // The candidates of a block, as a part of `logits`.
  std::span<const float> Block(std::span<const float> logits, uint32_t block) const;

  const uint32_t vocabulary_size_;
  const uint32_t candidate_count_;
  std::vector<float> block_max_;       // [blocks] of kNoiseBlock candidates
  float raw_max_ = 0;                  // of all logits, padding included
  float top_ = 0;                      // the largest of block_max_
  uint32_t top_block_ = 0;             // the first block that holds it
  std::vector<float> block_scratch_;   // [blocks]
  std::vector<uint8_t> block_edited_;  // [blocks]
  std::vector<float> weights_;         // [candidate_count]
  // Intervals of ln(weight), 1/64 wide; the last takes everything from where weights are 0.
  static constexpr uint32_t kBucketsPerUnit = 64;
  static constexpr uint32_t kBuckets = 24 * kBucketsPerUnit;
  static uint32_t BucketOf(float x);
  std::vector<double> bucket_sums_;  // [kBuckets], of CutAll
  const ExpKernels& exp_;
  std::vector<Candidate> candidates_;  // capacity candidate_count
  std::vector<Edit> edits_;            // capacity vocabulary_size + kLogitBiasMax
  std::vector<Edit> never_;            // below candidate_count; `raw` is of the row in work
  std::vector<float> masked_;          // [vocabulary_size] once a mask came
};

}  // namespace plumb::engine
