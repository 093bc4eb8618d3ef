// tests/sim/scheduler_sim.h
// The production scheduler, page pool and prefix tree without an engine, so that all they decide is
// in sight: who runs, who waits, who holds which page. A page's bytes here depend on whose they
// are, so that one that is read across isolation keys shows even when its tokens are the right
// ones. Judged after each plan: its shape, priorities, fairness, progress, what the pages hold.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "kvcache/page_pool.h"
#include "kvcache/prefix_tree.h"

namespace plumb::sim {

// A sequence and what it must find in its pages.
struct SimSequence {
  engine::Sequence sequence;
  uint32_t isolation = 0;
  std::vector<base::TokenId> tokens;  // [length_max + kDraftsMax]
  std::vector<uint64_t> slots;        // of each known token, as its own key computes them
  uint32_t blocked_steps = 0;         // waited in vain behind lower priorities
  double work = 0;                    // all that it took: wrong guesses and beginning again too
};

struct SchedulerSimConfig {
  uint64_t seed = 0;
  uint32_t pages = 0;
  engine::SchedulerLimits limits;
  bool prefix_cache = true;
  uint32_t sequences = 0;  // that come in all
  uint32_t tenants = 1, isolations = 1;
  uint32_t length_max = 0;  // of a sequence
  double flood = 0;         // share of the sequences that are tenant 0's beyond its own
  double arrival_chance = 0, removal_chance = 0, draft_chance = 0, draft_accuracy = 0;
  bool one_priority = false;

  static SchedulerSimConfig Draw(uint64_t seed);
  std::string ToString() const;
};

// Thread: one. Run once.
class SchedulerSim {
 public:
  explicit SchedulerSim(const SchedulerSimConfig& config);
  ~SchedulerSim();

  // False when something is wrong; failure() says what.
  bool Run();
  const std::string& failure() const { return failure_; }

  // What the run came to.
  uint64_t steps() const { return steps_; }
  uint64_t preemptions() const { return scheduler_.preemptions(); }
  uint64_t kept_drafts() const { return kept_drafts_; }
  uint64_t reused_tokens() const { return scheduler_.pages().reused_tokens(); }

 private:
  void Add();
  void RemoveOne();
  void Guess(SimSequence& sequence);
  void Forward(const engine::StepPlan& plan);
  void Compute(const engine::PlannedRows& item);
  void Sample(const engine::PlannedRows& item);
  void CheckPlan(const engine::StepPlan& plan);
  void CheckPages();
  void CheckPriorities();
  void CheckFairness();
  void Fail(std::string what);
  SimSequence& Of(engine::Sequence& sequence) { return *by_order_[sequence.order]; }
  std::byte* Slot(const SimSequence& sequence, size_t place) const;
  base::Duration Elapsed(const engine::StepPlan& plan);

  const SchedulerSimConfig config_;
  base::Rng rng_;
  std::unique_ptr<kvcache::PagePool> pool_;
  std::unique_ptr<kvcache::PrefixTree> tree_;  // null: nothing is reused
  engine::Scheduler scheduler_;
  std::deque<SimSequence> all_;
  std::vector<SimSequence*> by_order_;  // live
  std::vector<double> served_;          // by tenant: work, as src/engine/fair_share.h weighs it
  // Of two tenants that both have had somebody waiting since: what they had been served then.
  struct Race {
    bool on = false;
    double first = 0, second = 0;
  };
  std::vector<Race> races_;  // [tenants, tenants]
  double dearest_ = 0;       // work of one sequence: the most so far, or of length_max at once
  uint64_t steps_ = 0, steps_allowed_ = 0, kept_drafts_ = 0;
  std::string failure_;
};

}  // namespace plumb::sim
