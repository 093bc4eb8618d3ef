// engine/drafter_testing.h
// For tests and simulations: a drafter that was told the answers, and guesses wrong as often as it
// is asked to. What it guesses is a function of its seed and of the order of the calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/drafter.h"

namespace plumb::engine {

// Thread: engine, but Know: any, before the request is submitted, and not while the engine runs.
class FakeDrafter final : public Drafter {
 public:
  // Of ten guesses, so many are right.
  FakeDrafter(uint64_t seed, uint32_t right_of_ten, uint32_t vocabulary_size)
      : rng_(seed), right_of_ten_(right_of_ten), vocabulary_size_(vocabulary_size) {}

  // Samples are told apart by their request's seed, and their index.
  void Know(uint64_t request_seed, uint32_t sample, std::vector<TokenId> prompt,
            std::vector<TokenId> answer) {
    prompt.insert(prompt.end(), answer.begin(), answer.end());
    known_[{request_seed, sample}] = std::move(prompt);
  }

  std::unique_ptr<DraftState> Begin(const SamplingParams& sampling, uint32_t sample_index,
                                    uint32_t) override {
    auto state = std::make_unique<State>();
    const auto place = known_.find({sampling.seed, sample_index});
    if (place != known_.end()) state->known = &place->second;
    return state;
  }

  void DraftFor(std::span<Draft* const> batch) override {
    for (Draft* draft : batch) {
      const auto* known = static_cast<State*>(draft->state)->known;
      const uint64_t wanted = rng_.Below(draft->max + 1);
      while (draft->count < wanted) {
        const size_t place = draft->tokens.size() + draft->count;
        const bool right =
            known != nullptr && place < known->size() && rng_.Below(10) < right_of_ten_;
        const auto random = static_cast<uint32_t>(rng_.Below(vocabulary_size_));
        draft->Append(right ? (*known)[place] : TokenId{random}, 0.5f, 0);
      }
    }
  }

  void Learn(DraftState&, uint8_t, bool) override {}

 private:
  struct State final : DraftState {
    const std::vector<TokenId>* known = nullptr;
  };

  base::Rng rng_;
  const uint32_t right_of_ten_;
  const uint32_t vocabulary_size_;
  std::map<std::pair<uint64_t, uint32_t>, std::vector<TokenId>> known_;
};

}  // namespace plumb::engine
