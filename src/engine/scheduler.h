// engine/scheduler.h
// Decides who computes what in a step: one ragged batch of a row for each decoding sequence, then
// parts of prompts up to a budget that is shared fairly. No clock, no thread, no tokens: a function
// of what was added, removed and observed, so that a simulation can drive it.
// Thread: engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/sequence.h"
#include "kvcache/page_pool.h"

namespace plumb::engine {

struct SchedulerLimits {
  uint32_t sequences_max = 0;     // running; <= rows_max
  uint32_t rows_max = 0;          // of a step
  uint32_t prefill_rows_max = 0;  // prompt rows of a step
  uint32_t waiting_max = 0;       // added and never run; the caller keeps to it (CHECK)
  base::Duration step_target{0};  // prompt rows are chosen to make a step about so long; 0 = off
};

// Rows [position, position + rows) of a sequence. `samples`: they are its last known tokens, so the
// last row's logits give the next one.
struct PlannedRows {
  Sequence* sequence;
  uint32_t position;
  uint32_t rows;
  bool samples;
};

struct StepPlan {
  std::vector<PlannedRows> items;  // decode rows first; each sequence at most once
  uint32_t rows = 0;               // sum over items, <= rows_max
  uint32_t logits_rows = 0;        // items that sample, <= sequences_max
};

// Order of service is arrival: every running sequence is older than every waiting one, and when
// pages run out the youngest running one gives all of its pages back and waits to be computed
// again. The oldest is never preempted and fits the pool alone, so there is always progress.
class Scheduler {
 public:
  // The pool must outlive the scheduler, and nobody else may allocate from it meanwhile.
  Scheduler(const SchedulerLimits& limits, kvcache::PagePool& pool);

  // Puts a new sequence at the end of the waiting ones; its length_max must fit the pool (CHECK).
  void Add(Sequence& sequence);
  // The sequence has ended, waiting or running: its pages go back at once.
  void Remove(Sequence& sequence);

  // The next step; never empty while a sequence is here. Borrowed until the next call. The caller
  // computes the rows, calls Commit and raises sequence.length for each token it samples.
  const StepPlan& Plan();
  // The planned rows are in the pages now; `elapsed` is what the step took.
  void Commit(base::Duration elapsed);

  // By age, oldest first.
  std::span<Sequence* const> waiting() const { return waiting_; }
  std::span<Sequence* const> running() const { return running_; }
  uint64_t preemptions() const { return preemptions_; }
  // Prompt rows that the next step may hold beside `decode_rows`.
  uint32_t PrefillBudget(uint32_t decode_rows) const;

 private:
  void PlanDecode();
  void Admit();
  void PlanPrefill();
  void PlanRows(Sequence& sequence, uint32_t rows);

  // Pages for the first `length` tokens; false when the pool has too few, and then nothing changed.
  bool Grow(Sequence& sequence, uint32_t length);
  void ReleasePages(Sequence& sequence);
  void PreemptYoungest();

  const SchedulerLimits limits_;
  kvcache::PagePool& pool_;
  std::vector<Sequence*> waiting_;  // by order; at most waiting_max + sequences_max
  std::vector<Sequence*> running_;  // by order; all before waiting_
  StepPlan plan_;
  bool preempted_ = false;  // in this step
  uint64_t preemptions_ = 0;
  double row_ns_ = 0;  // running mean of a step's time by row; 0 = not measured
  struct Share {
    Sequence* sequence;
    uint32_t rows;
  };
  std::vector<Share> shares_;  // scratch of PlanPrefill
};

}  // namespace plumb::engine
