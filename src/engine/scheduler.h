// engine/scheduler.h
// Decides who computes what in a step: one ragged batch of a row for each decoding sequence, its
// drafts, and parts of prompts, as many as the step's time allows. No clock, no thread: a function
// of what was added, removed and observed, so that a simulation can drive it.
// Read next: docs/scheduling.md (the rules and why), step_cost.h and step_limit.h (time),
// fair_share.h (tenants), sequence_pages.h (pages). Thread: engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/fair_share.h"
#include "engine/sequence.h"
#include "engine/sequence_pages.h"
#include "engine/step_cost.h"
#include "engine/step_limit.h"
#include "engine/stretch.h"
#include "kvcache/page_pool.h"
#include "kvcache/prefix_tree.h"

namespace plumb::engine {

struct SchedulerLimits {
  uint32_t sequences_max = 0;     // running; <= rows_max
  uint32_t rows_max = 0;          // of a step
  uint32_t logits_rows_max = 0;   // rows of a step that have logits; >= sequences_max
  uint32_t prefill_rows_max = 0;  // prompt rows of a step
  uint32_t waiting_max = 0;       // added and never run; the caller keeps to it (CHECK)
  base::Duration step_target{0};  // StepTargets::step
  base::Duration itl_target{0};   // StepTargets::itl
};

// Rows [position, position + rows) of a sequence. `logits_rows`: how many of the last have logits;
// 0 when more of its prompt is left to compute (but see Sequence::logits_from) or it embeds, else
// the last known token's and those of its drafts.
struct PlannedRows {
  Sequence* sequence;  // null: it was removed after Plan
  uint32_t position;
  uint32_t rows;
  uint32_t logits_rows;
};

struct StepPlan {
  std::vector<PlannedRows> items;  // decode rows first; each sequence at most once
  uint32_t rows = 0;               // sum over items, <= rows_max
  uint32_t logits_rows = 0;        // sum over items, <= logits_rows_max
  uint64_t keys = 0;               // sum over items

  StepShape shape() const { return {rows, logits_rows, keys}; }
};

// What the coming step is going to hold besides drafts, as far as it can be foreseen.
struct StepForecast {
  StepShape decode;          // of the sequences that decode now
  StepShape expected;        // with the prompt rows that are likely to share the step
  uint32_t prompt_rows = 0;  // of it
  uint32_t drafts_max = 0;   // rows that drafts may have

  StepShape WithDrafts(uint32_t drafts) const;
};

// Rank: as Outranks says. The highest-ranking running sequence is never preempted by another
// running one, fits the pool alone, and has a row in every step: it ends after finitely many.
// Nothing outranks the oldest of the highest priority that is running, and one that waits is of a
// lower priority or takes the place of whoever is: so as long as a sequence is here, some sequence
// of the highest priority here comes to its end. A sequence is preempted for pages only by those
// that outrank it, of which there are finitely many within its priority; below, strict priority is
// meant: batch work may wait until its deadline while better-paid work never ends. Who is admitted
// next: highest priority, then those that have run before, then the tenant served least, then
// arrival. It is never passed over for want of pages, so that large ones are not starved by small
// ones.
class Scheduler {
 public:
  // What it is given must outlive the scheduler, and nobody else may allocate from the pool
  // meanwhile. `tree` null: no page is reused, and sequences need no tokens. `states` null: the
  // model has none; else as many as sequences_max.
  Scheduler(const SchedulerLimits& limits, kvcache::PagePool& pool,
            kvcache::PrefixTree* tree = nullptr, SequenceStates* states = nullptr);

  // Takes a new sequence, younger than all here; its length_max must fit the pool (CHECK).
  void Add(Sequence& sequence);
  // The sequence has ended, waiting or running: its pages go back at once. Also between Plan and
  // Commit.
  void Remove(Sequence& sequence);

  // While paused, none starts that has not begun before; the steps of those that have go on, and
  // may be empty once they have ended.
  void Pause(bool paused) { paused_ = paused; }

  // The next step; not empty while a sequence is here, unless paused. Borrowed until the next call.
  // The caller computes the rows, raises sequence.length by each token it samples (kept drafts
  // among them), and calls Commit. Of sequence.drafts it grants as many as there is time and room
  // for, the first ones; nobody gives a page back for a guess.
  const StepPlan& Plan();
  // The planned rows are in the pages now, up to the last token but one of each sequence; rows of
  // drafts beyond were in vain. `elapsed` is what the step took; 0: do not learn from it.
  void Commit(base::Duration elapsed);

  // For choosing drafts before Plan.
  StepForecast Foresee() const;

  // By rank.
  std::span<Sequence* const> waiting() const { return waiting_; }
  std::span<Sequence* const> running() const { return running_; }
  uint64_t preemptions() const { return preemptions_; }
  uint64_t starts() const { return starts_; }  // sequences that ran for the first time
  const SequencePages& pages() const { return pages_; }
  const StepCost& cost() const { return cost_; }
  // What the sequence's tenant has been served (fair_share.h); the sequence is here.
  double Served(const Sequence& sequence) const { return fair_.Served(sequence); }

 private:
  // A prompt that may have rows in this step.
  struct Share {
    Sequence* sequence;
    const base::Hash256* page;  // that it computes, if others may want it
    double served;              // its tenant, what it gets in this step included
    uint32_t rows_max;          // in this step, as its checkpoints want it
    uint32_t rows = 0;
    bool adopted = false;
    bool no_more_logits = false;  // in this step
    uint32_t left() const { return sequence->remaining() - rows; }
    bool done() const { return rows == rows_max || no_more_logits; }
  };

  // Who runs: scheduler_admission.cc.
  void Enqueue(Sequence& sequence);
  void Admit();
  Sequence* NextToAdmit() const;
  void Start(Sequence& sequence);
  // Pages that the running ones still need.
  uint32_t KeptPages() const;
  uint32_t KeptFor(const Sequence& sequence, std::span<Sequence* const> others) const;
  // Pages for so many rows more; false when the sequence was preempted for want of them.
  bool GrowOrPreempt(Sequence& sequence, uint32_t rows);
  void PreemptLast();

  // Rows of prompts: scheduler_prompts.cc.
  void CollectPrompts();
  void DropWhoWaitForPages();
  void SharePrompts();
  void TakeTurns();
  void NoteTurn(double work, bool first);
  // Some more rows, at most `most`: the work of it. Negative when not one more fits; `always`: one
  // fits anyhow.
  double Grant(Share& share, uint32_t most, bool always);
  bool Fits(const StepShape& shape) const;
  // Of a sequence's next rows, drafts not among them: those that have logits.
  static uint32_t LogitsRows(const Sequence& sequence, uint32_t rows);

  void PlanStreams();
  void GrantDrafts();
  StepTargets targets() const {
    return {limits_.step_target, limits_.itl_target, stretch_.factor()};
  }
  void LearnStretch(base::Duration elapsed);
  StepShape DecodeShape() const;
  // Somebody waits for a next token.
  bool Awaited() const;
  uint32_t DraftRoom(const StepShape& decode, size_t prompts) const;
  void Build();
  void PlanRows(Sequence& sequence, uint32_t rows);

  const SchedulerLimits limits_;
  SequencePages pages_;
  StepCost cost_;
  Stretch stretch_;
  FairShare fair_;
  std::vector<Sequence*> waiting_;  // by rank; at most waiting_max + 3 * sequences_max
  std::vector<Sequence*> running_;  // by rank; at most sequences_max
  StepPlan plan_;
  bool paused_ = false;
  uint64_t preemptions_ = 0;
  uint64_t starts_ = 0;
  uint64_t next_order_ = 0;  // the least that a new sequence may have
  // What the first prompts by rank are owed of the work on prompts; goes on from step to step.
  double rank_credit_ = 0;
  uint32_t prompt_rows_ = 0;  // of the last plan

  // Scratch of Plan.
  std::vector<Sequence*> streams_;  // that decode in this step
  std::vector<Share> shares_;
  StepShape shape_;                // so far
  base::Duration alone_{0};        // predicted for the streams without drafts and prompts
  base::Duration limit_{0};        // for the whole step
  uint32_t prompt_rows_left_ = 0;  // that the step may hold
  uint32_t logits_left_ = 0;       // rows, beside one for each share
};

}  // namespace plumb::engine
