// engine/engine_sample.cc
// Logits to tokens, hidden states to embeddings: the rows of a step are sampled beside each other,
// the rows of one sample in order. A draft is kept exactly when it is the token that is sampled in
// its place, with the penalties, the grammar and the noise of that place; so the answer is the one
// without drafts.
#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "engine/engine.h"

namespace plumb::engine {

void Engine::SampleRows() {
  TraceScope scope(options_.trace, clock_, TracePhase::kSample, step_);
  scope.set_rows(planned_.logits_rows);
  std::vector<HandedSample>& handed = host_.current().samples;
  CHECK(handed.empty()) << "ends are handed over before the forward";
  handed.resize(targets_.size());
  std::atomic<uint32_t> next{0};
  const auto sample_some = [&](uint32_t worker) {
    for (;;) {
      const uint32_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= targets_.size()) return;
      SampleTarget(targets_[i], samplers_[worker], handed[i]);
    }
  };
  const auto workers = static_cast<uint32_t>(std::min(samplers_.size(), targets_.size()));
  if (workers > 1) {
    options_.pool->ParallelFor(workers, sample_some);
  } else {
    sample_some(0);
  }
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].sample_rows < 2) continue;
    counters_.draft_rows.fetch_add(targets_[i].sample_rows - 1, std::memory_order_relaxed);
    counters_.drafts_kept.fetch_add(std::max(handed[i].tokens, 1u) - 1, std::memory_order_relaxed);
  }
}

void Engine::SampleTarget(const Target& target, Sampler& sampler, HandedSample& handed) {
  Sample& sample = *target.sample;
  handed = NewHanded(sample);
  handed.first_result = target.first_row;
  base::Status status =
      target.hidden.empty() ? DescribePrompt(target, sampler, handed) : PoolRows(target, handed);
  if (status.ok() && target.sample_rows > 0) status = SampleInTurn(target, sampler, handed);
  if (status.ok()) return;
  handed.end = FinishReason::kError;
  handed.status = std::move(status);
}

base::Status Engine::DescribePrompt(const Target& target, Sampler& sampler, HandedSample& handed) {
  if (target.prompt_rows == 0) return base::OkStatus();
  Sample& sample = *target.sample;
  const std::vector<TokenId>& prompt = sample.request.request.prompt;
  const uint32_t top_count = sample.request.request.sampling.top_logprobs;
  for (uint32_t row = 0; row < target.prompt_rows; ++row) {
    SampleResult& result = host_.current().results[target.first_row + row];
    sampler.Describe(LogitsRow(target.first_row + row), prompt[target.position + row + 1],
                     top_count, result);
    RETURN_IF_ERROR(result.status);
    ++handed.prompt_results;
  }
  const uint32_t described = target.position + target.prompt_rows;
  // The last token's row is the first that is sampled from.
  sample.sequence.logits_from = described + 1 < prompt.size() ? described : kNoPosition;
  return base::OkStatus();
}

base::Status Engine::PoolRows(const Target& target, HandedSample& handed) {
  Sequence& sequence = target.sample->sequence;
  Pooler& pooler = *target.sample->pooler;
  RETURN_IF_ERROR(pooler.Add(target.hidden));
  const auto rows = static_cast<uint32_t>(target.hidden.size() / info_.hidden_width);
  sequence.hidden_from = target.position + rows;
  if (sequence.hidden_from < sequence.length) return base::OkStatus();
  RETURN_IF_ERROR(pooler.Finish());
  handed.end = FinishReason::kStop;
  return base::OkStatus();
}

base::Status Engine::SampleInTurn(const Target& target, Sampler& sampler, HandedSample& handed) {
  Sample& sample = *target.sample;
  Sequence& sequence = sample.sequence;
  const SamplingParams& params = sample.request.request.sampling;
  const uint32_t first_row = target.first_row + target.prompt_rows;
  for (uint32_t row = 0; row < target.sample_rows; ++row) {
    SampleResult& result = host_.current().results[first_row + row];
    const NoiseKey key{
        .seed = params.seed, .sample_index = sample.index, .position = sequence.length};
    std::span<const uint32_t> mask;
    if (target.mask != nullptr) {
      if (row >= target.mask->filled) return target.mask->status;
      mask = host_.masks().Mask(target.mask->first_mask + row);
    }
    sampler.Sample(LogitsRow(first_row + row), params, sample.counts, key, result, mask);
    RETURN_IF_ERROR(result.status);
    TokenId& place = sample.tokens[sequence.length];
    const bool kept = row + 1 < target.sample_rows && place == result.token;
    place = result.token;
    ++sequence.length;
    ++handed.tokens;
    if (UsesPenalties(params)) sample.counts.AddGenerated(result.token);
    ASSIGN_OR_RETURN(const bool ended, EndsAfter(result.token, handed));
    if (ended) return base::OkStatus();
    if (!kept) break;
  }
  sample.forced.clear();
  if (sample.grammar != nullptr) sample.grammar->AppendForced(GuessesMax(sample), sample.forced);
  return base::OkStatus();
}

base::Result<bool> Engine::EndsAfter(TokenId token, HandedSample& handed) const {
  Sample& sample = *handed.sample;
  const SamplingParams& params = sample.request.request.sampling;
  const auto ends = tokenizer_.end_tokens();
  const auto& stops = params.stop_tokens;
  handed.end_token = (!params.ignore_end && std::binary_search(ends.begin(), ends.end(), token)) ||
                     std::find(stops.begin(), stops.end(), token) != stops.end();
  if (!handed.end_token && sample.grammar != nullptr) {
    RETURN_IF_ERROR(sample.grammar->Accept(token));
  }
  if (handed.end_token || (sample.grammar != nullptr && sample.grammar->Complete())) {
    handed.end = FinishReason::kStop;
  } else if (sample.sequence.length == sample.sequence.length_max) {
    handed.end = FinishReason::kLength;
  }
  return handed.end.has_value();
}

std::span<float> Engine::LogitsRow(uint32_t row) {
  return {logits_.get() + size_t{row} * info_.vocabulary_size, info_.vocabulary_size};
}

}  // namespace plumb::engine
