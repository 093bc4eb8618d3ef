// engine/hand_over.h
// What the engine's thread hands to the host's in a step: what was sampled and what ended, to be
// made into text and events; and the masks that grammars must fill beside the forward. Both are
// memory that is kept from step to step.
// Read next: engine/host_work.h (what is done with them), engine/host_thread.h (when).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/live_request.h"
#include "engine/request.h"
#include "engine/sampler.h"

namespace plumb::engine {

// What a step gave one sample. Its results lie side by side in HandOver.results: log-probabilities
// of prompt tokens, then the tokens sampled.
struct HandedSample {
  Sample* sample;
  uint32_t first_result = 0;
  uint32_t prompt_results = 0;
  uint32_t tokens = 0;
  std::optional<FinishReason> end;  // the engine has ended it after these
  bool end_token = false;           // the last of them is why: an end or stop token, without text
  base::Status status;              // not ok only with kError
  // For Finish.
  uint32_t cached_tokens = 0;
  std::array<uint32_t, kHintsMax> stored_tokens{};
  uint32_t weights_version = 0;
};

struct HandOver {
  uint64_t step = 0;
  std::vector<HandedSample> samples;  // each at most once with tokens, at most once with `end`
  std::vector<SampleResult> results;  // [rows with logits of a step], by row

  std::span<const SampleResult> ResultsOf(const HandedSample& handed) const {
    return std::span(results).subspan(handed.first_result, handed.prompt_results + handed.tokens);
  }
};

// Masks for 1 + drafts rows of a sample: of its next token, and of those after each draft.
struct MaskItem {
  Sample* sample;
  uint32_t first_mask = 0;  // of MaskWork.words
  uint32_t drafts = 0;      // at sample->sequence.tokens[length, length + drafts)
  // The result. Fewer than 1 + drafts are filled where the grammar refuses a draft, which ends the
  // row's verification, or else because of `status`.
  uint32_t filled = 0;
  base::Status status;
};

struct MaskWork {
  uint64_t step = 0;
  std::vector<MaskItem> items;
  std::span<uint32_t> words;  // [masks, words_per_mask]
  uint32_t words_per_mask = 0;

  std::span<uint32_t> Mask(uint32_t index) const {
    return words.subspan(size_t{index} * words_per_mask, words_per_mask);
  }
};

}  // namespace plumb::engine
