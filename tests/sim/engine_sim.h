// tests/sim/engine_sim.h
// One run: the production engine, in its synchronous mode, among simulated clients under simulated
// time. Everything follows from the seed. What is judged: tests/sim/ledger.h, and here that pages
// add up, queues keep to their maxima, refusals have a reason, and all ends when arrivals end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/random.h"
#include "config.h"
#include "engine/drafter_testing.h"
#include "engine/engine.h"
#include "journal.h"
#include "ledger.h"
#include "sim_model.h"
#include "workload.h"
#include "world.h"

namespace plumb::sim {

// Thread: one. Run once.
class EngineSim {
 public:
  explicit EngineSim(const SimConfig& config);
  ~EngineSim();

  // Until all has ended, or something is wrong: then the journal says what. False when it is.
  bool Run();

  const Journal& journal() const { return journal_; }
  const LedgerCounts& counts() const { return ledger_.counts(); }
  const engine::EngineStats& stats() const { return stats_; }
  uint64_t forwards() const { return ledger_.forwards(); }
  bool stateful() const { return config_.state.window > 0; }

 private:
  std::unique_ptr<engine::Engine> MakeEngine();

  // Events.
  void Arrive();
  void TellDrafter(Record& record);
  void Submit(Record& record, uint32_t tries_left);
  void CancelLater(Record& record);
  void Cancel(Record& record);

  void BeginForward();
  void StepUntilIdle();
  void Drain();
  void CheckStep();
  void CheckEnd();

  const SimConfig config_;
  World world_;
  Journal journal_{world_.clock()};
  base::Rng rng_;
  const std::unique_ptr<text::Tokenizer> tokenizer_;
  SimModel model_, draft_model_;
  engine::FakeDrafter fake_drafter_;
  Ledger ledger_;
  std::unique_ptr<engine::Engine> engine_;
  Workload workload_;

  uint32_t arrived_ = 0;           // requests that were made
  uint64_t forwards_allowed_ = 0;  // until all must have ended
  bool draining_ = false;
  engine::EngineStats stats_;
};

}  // namespace plumb::sim
