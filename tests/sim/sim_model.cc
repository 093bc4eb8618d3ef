// tests/sim/sim_model.cc
// Time and faults of a forward, behind tests/sim/sim_model.h.
#include "sim_model.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/oracle_testing.h"

namespace plumb::sim {
namespace {

constexpr uint32_t kRowsMax = 4096, kLogitsRowsMax = 256;

}  // namespace

SimModel::SimModel(uint32_t context_max, const StepTime& time, uint64_t seed, World& world,
                   const engine::HashStateShape& state)
    : hash_(engine::kVocabularySize, context_max, kRowsMax, kLogitsRowsMax, state),
      time_(time),
      rng_(seed),
      world_(world) {}

void SimModel::Forward(std::span<const model::SequenceRows> sequences, std::span<float> logits) {
  if (before_forward) before_forward();
  // Requests arrive and go while it computes, as on other threads.
  world_.RunUntil(world_.now() + Cost(sequences));
  hash_.Forward(sequences, logits);
  if (logits.empty() || rng_.Uniform() >= bad_logits_chance) return;
  logits[rng_.Below(logits.size())] = std::numeric_limits<float>::quiet_NaN();
  on_spoilt_row();
}

base::Duration SimModel::Cost(std::span<const model::SequenceRows> sequences) {
  double rows = 0, keys = 0;
  for (const model::SequenceRows& sequence : sequences) {
    const double count = static_cast<double>(sequence.tokens.size());
    rows += count;
    keys += count * (sequence.position + (count + 1) / 2);
  }
  double ns = static_cast<double>(time_.fixed.ns) + rows * static_cast<double>(time_.by_row.ns) +
              keys * time_.by_key_ns;
  ns *= 1 + time_.noise * (2 * rng_.Uniform() - 1);
  if (rng_.Uniform() < time_.slow_chance) ns *= time_.slow_factor;
  return {static_cast<int64_t>(ns) + 1};
}

void MakeWrong(engine::HashModel& model, double accuracy) {
  model.after_row = [accuracy](std::span<float> row) {
    base::Rng rng(std::bit_cast<uint32_t>(row[0]));
    if (rng.Uniform() >= accuracy) std::rotate(row.begin(), row.begin() + 17, row.end());
  };
}

}  // namespace plumb::sim
