// tests/sim/config.h
// What a run is made of, all of it drawn from its seed: the machine (pages, seats, queue, speed),
// the crowd (tenants, priorities, lengths, bursts) and the faults. Printed before a run, so that a
// failure shows what it was about. Read next: tests/sim/workload.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "engine/hash_window.h"

namespace plumb::sim {

// Simulated time that a step takes.
struct StepTime {
  base::Duration fixed{};   // the weights are read once
  base::Duration by_row{};  //
  double by_key_ns = 0;     // of a row with each key before it
  double noise = 0;         // share of the time, up or down
  double slow_chance = 0;   // that a step takes slow_factor as long
  double slow_factor = 1;
};

// Who guesses the next tokens.
enum class Guesses : uint8_t {
  kNone,
  kFake,    // one that was told the answers, computed however little it pays
  kServer,  // the production's n-grams and draft model, and its weighing of costs
};

struct SimConfig {
  uint64_t seed = 0;

  // The engine.
  uint32_t pages = 0;
  uint32_t context_max = 0;  // of the model
  uint32_t sequences_max = 0;
  uint32_t waiting_max = 0;
  uint32_t rows_max = 0;
  uint32_t prefill_rows_max = 0;
  base::Duration step_target{};
  bool prefix_cache = true;
  Guesses guesses = Guesses::kNone;
  double draft_accuracy = 0;  // chance that a drafted token is the right one
  StepTime step_time;
  // Of a model that has states beside its pages; window 0: it has none.
  engine::HashStateShape state;
  uint32_t checkpoints_max = 0;
  bool never_samples = false;  // it has ids that stand in no answer

  // The crowd.
  uint32_t requests = 0;
  uint32_t tenants = 1;
  uint32_t isolations = 1;  // tenant t shares pages under key t % isolations
  base::Duration gap{};     // mean time between arrivals
  double burst_chance = 0;  // that many arrive at once
  double long_chance = 0;   // that a prompt is as long as fits
  double own_chance = 0;    // that a prompt is nobody else's
  double turn_chance = 0;   // that a prompt goes on from an earlier answer
  double grammar_chance = 0;
  double prompt_logprobs_chance = 0;
  uint32_t answer_tokens = 0;  // most that an answer has, as a rule
  bool one_priority = false;

  // Faults.
  double cancel_chance = 0;       // of a request
  double deadline_chance = 0;     // that a request has one
  base::Duration patience{};      // mean time until cancel or deadline
  double sink_cancel_chance = 0;  // that whoever receives a token cancels there and then
  double bad_logits_chance = 0;   // of a step: one of its rows is not a number
  bool drain = false;             // in the middle of it all

  // Deterministic; any seed is good.
  static SimConfig Draw(uint64_t seed);
  std::string ToString() const;
};

}  // namespace plumb::sim
