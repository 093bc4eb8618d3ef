// tests/sim/run.h
// Seeds, one after the other, for the tests and for plumb_sim: what they came to, and a report when
// one goes wrong, also when a CHECK of the production code ends the process.
#pragma once

#include <cstdint>
#include <ostream>

#include "engine_sim.h"
#include "scheduler_sim.h"

namespace plumb::sim {

// Summed over runs.
struct Totals {
  uint64_t runs = 0, forwards = 0;
  LedgerCounts counts;
  uint64_t preemptions = 0, evictions = 0, hinted_evictions = 0, prefix_hits = 0;
  // Of models with states.
  uint64_t state_runs = 0, resumes = 0, checkpoint_evictions = 0;
  uint64_t drafts_kept = 0, drafts_in_vain = 0;
  // Of the scheduler alone.
  uint64_t scheduler_steps = 0, scheduler_preemptions = 0, scheduler_drafts_kept = 0,
           reused_tokens = 0;

  void Add(const EngineSim& run);
  void Add(const SchedulerSim& run);
};
std::ostream& operator<<(std::ostream& out, const Totals& totals);

// The seed's run of the scheduler alone, then that of the engine. False when something is wrong:
// `out` then has the configuration, the last events and how to see it again. Thread: one in the
// process.
bool RunSeed(uint64_t seed, std::ostream& out, Totals& totals);

}  // namespace plumb::sim
