// engine/drafter.h
// Guesses the next tokens of sequences, so that several rows of each are computed in one step. A
// guess is kept exactly when it is the token that is sampled in its place, so a drafter changes
// speed and never an answer. Implementations: ngram_drafter.h, model_drafter.h. Which guesses are
// worth a row, and who asks whom: speculation.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/token_id.h"
#include "engine/request.h"
#include "engine/token_counts.h"

namespace plumb::engine {

// Guesses that a sequence may have in a step.
constexpr uint32_t kDraftsMax = 16;

// What a drafter remembers of one sequence. Made by Begin, for that drafter alone, which must
// outlive it; it may be dropped and begun anew at any time between steps.
class DraftState {
 public:
  virtual ~DraftState() = default;
};

// One sequence in a step: what is known of it, and what is guessed to follow.
struct Draft {
  DraftState* state = nullptr;
  // All of the sequence, prompt first; from step to step it only grows.
  std::span<const TokenId> tokens;
  // For penalties: as the next token is sampled with. Null without penalties; as before on return.
  TokenCounts* counts = nullptr;
  uint32_t max = 0;  // guesses at most, those that are there already included; <= kDraftsMax

  // The guesses, in order. Those already here when a drafter is called (forced by a grammar, say)
  // stay, and it goes on after them.
  uint32_t count = 0;
  std::array<TokenId, kDraftsMax> guesses{};
  // The probability that the guess is right, given that those before it are; in [0, 1].
  std::array<float, kDraftsMax> confidence{};
  // The drafter's own name for why it guessed so, for Learn.
  std::array<uint8_t, kDraftsMax> kind{};

  void Append(TokenId guess, float probability, uint8_t why) {
    guesses[count] = guess;
    confidence[count] = probability;
    kind[count] = why;
    ++count;
  }
};

// Thread: engine.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // For a sequence of at most `length_max` tokens. Allocates; the calls below do not.
  virtual std::unique_ptr<DraftState> Begin(const SamplingParams& sampling, uint32_t sample_index,
                                            uint32_t length_max) = 0;

  // Appends guesses to each of the drafts, of different sequences; none is an answer too.
  virtual void DraftFor(std::span<Draft* const> batch) = 0;

  // A guess of `kind` proved right or wrong; those before it were right. Also of guesses that no
  // row was spent on, since the sequence tells in time.
  virtual void Learn(DraftState& state, uint8_t kind, bool right) = 0;
};

}  // namespace plumb::engine
