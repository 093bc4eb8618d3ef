// tests/sim/sim_model.h
// The hash model in simulated time: a forward takes as long as its rows and keys make it, with
// noise and now and then a slow one; while it runs, the rest of the world goes on. Some rows of
// logits are spoilt. Read next: src/engine/hash_model.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/random.h"
#include "config.h"
#include "engine/hash_model.h"
#include "model/model.h"
#include "world.h"

namespace plumb::sim {

// Thread: one.
class SimModel final : public model::Model {
 public:
  // `world` must outlive the model.
  SimModel(uint32_t context_max, const StepTime& time, uint64_t seed, World& world,
           const engine::HashStateShape& state = {});

  const model::ModelInfo& info() const override { return hash_.info(); }
  uint32_t rows_max() const override { return hash_.rows_max(); }
  uint32_t logits_rows_max() const override { return hash_.logits_rows_max(); }
  void Forward(std::span<const model::SequenceRows> sequences, std::span<float> logits) override;
  void SaveState(const std::byte* state, uint32_t position,
                 std::span<std::byte> checkpoint) const override {
    hash_.SaveState(state, position, checkpoint);
  }
  void LoadState(std::span<const std::byte> checkpoint, uint32_t position,
                 std::byte* state) const override {
    hash_.LoadState(checkpoint, position, state);
  }

  engine::HashModel& hash() { return hash_; }

  std::function<void()> before_forward;
  // Chance that a forward spoils one of its rows of logits, and who is told.
  double bad_logits_chance = 0;
  std::function<void()> on_spoilt_row;

 private:
  base::Duration Cost(std::span<const model::SequenceRows> sequences);

  engine::HashModel hash_;
  const StepTime time_;
  base::Rng rng_;
  World& world_;
};

// Makes `model`, a draft model, wrong with the chance 1 - accuracy: its logits are then another
// row's. A function of the row.
void MakeWrong(engine::HashModel& model, double accuracy);

}  // namespace plumb::sim
