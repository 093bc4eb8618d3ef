// engine/scheduler.h
// Decides who computes what in a step: one ragged batch of a row for each decoding sequence, then
// parts of prompts up to a budget that is shared fairly. No clock, no thread: a function of what
// was added, removed and observed, so that a simulation can drive it. What happens to pages:
// engine/sequence_pages.h. Thread: engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/sequence.h"
#include "engine/sequence_pages.h"
#include "kvcache/page_pool.h"
#include "kvcache/prefix_tree.h"

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
// again. The oldest is never preempted and fits the pool alone, so there is always progress. A
// sequence whose next page an older one is computing waits for it instead of computing it too.
// Pages are taken as rows are planned; admission leaves those that running prompts still need,
// where a page that several share counts once.
class Scheduler {
 public:
  // Pool and tree must outlive the scheduler, and nobody else may allocate from the pool meanwhile.
  // `tree` null: no page is reused, and sequences need no tokens.
  Scheduler(const SchedulerLimits& limits, kvcache::PagePool& pool,
            kvcache::PrefixTree* tree = nullptr);

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
  const SequencePages& pages() const { return pages_; }
  // Prompt rows that the next step may hold beside `decode_rows`.
  uint32_t PrefillBudget(uint32_t decode_rows) const;

 private:
  void PlanDecode();
  void Admit();
  void PlanPrefill(size_t admitted_from);
  void DropWhoWaitForPages();
  void PlanRows(Sequence& sequence, uint32_t rows);
  // Pages for so many rows more; false when the sequence was preempted for want of them.
  bool GrowOrPreempt(Sequence& sequence, uint32_t rows);
  void PreemptYoungest();

  const SchedulerLimits limits_;
  SequencePages pages_;
  std::vector<Sequence*> waiting_;  // by order; at most waiting_max + sequences_max
  std::vector<Sequence*> running_;  // by order; all before waiting_
  StepPlan plan_;
  bool preempted_ = false;  // in this step
  uint64_t preemptions_ = 0;
  double row_ns_ = 0;  // running mean of a step's time by row; 0 = not measured
  struct Share {
    Sequence* sequence;
    uint32_t rows;
    const base::Hash256* page;  // that it computes, if others may want it
  };
  std::vector<Share> shares_;  // scratch of PlanPrefill
};

}  // namespace plumb::engine
