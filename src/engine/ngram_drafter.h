// engine/ngram_drafter.h
// Guesses that a text goes on as it did before: what followed the latest of the longest earlier
// matches of the newest tokens, in the sequence itself, prompt and answer ("prompt lookup"). Free
// of any model, a fraction of a microsecond a token; right when an answer repeats or edits its
// prompt. Quiet where texts do not repeat: each kind of match has a rate of its own, which is
// learned.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/draft_rate.h"
#include "engine/drafter.h"

namespace plumb::engine {

// Matches are at least and at most so many tokens; longer ones count as kMatchTokensMax.
constexpr uint32_t kMatchTokensMin = 2;
constexpr uint32_t kMatchTokensMax = 32;
// Only the newest so many tokens are looked at; what is kept is 24 bytes for each.
constexpr uint32_t kMatchWindow = 32768;
// Earlier places that a lookup compares with at most, latest first.
constexpr uint32_t kMatchPlacesMax = 64;

class NgramDrafter final : public Drafter {
 public:
  NgramDrafter();

  std::unique_ptr<DraftState> Begin(const SamplingParams& sampling, uint32_t sample_index,
                                    uint32_t length_max) override;
  void DraftFor(std::span<Draft* const> batch) override;
  void Learn(DraftState& state, uint8_t kind, bool right) override;

  // By tokens that match: 2, 3, 4, 5-6, 7-8, 9-12, 13-16, 17-31, 32 and more.
  static constexpr uint32_t kKinds = 9;
  static uint8_t KindOf(uint32_t match_tokens);

 private:
  struct State;
  void DraftOne(Draft& draft);

  std::array<DraftRate, kKinds> rates_;  // over all sequences; prior of each one's own
};

}  // namespace plumb::engine
