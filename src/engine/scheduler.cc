// engine/scheduler.cc
// Decode rows (and preemption for their pages), admission, then the fair split of the prompt rows.
#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::engine {
namespace {

// A step that holds a prompt at all computes at least so many of its rows: fewer cost nearly the
// same.
constexpr uint32_t kPrefillRowsMin = 16;
// As long as nothing is measured: a first step of a large model must not take seconds.
constexpr uint32_t kPrefillRowsUnmeasured = 32;
// Weight of the newest step in the mean time by row.
constexpr double kRowTimeWeight = 0.2;

bool Older(const Sequence* a, const Sequence* b) { return a->order < b->order; }

}  // namespace

Scheduler::Scheduler(const SchedulerLimits& limits, kvcache::PagePool& pool)
    : limits_(limits), pool_(pool) {
  CHECK(limits.sequences_max >= 1 && limits.prefill_rows_max >= 1);
  CHECK(limits.sequences_max <= limits.rows_max) << "decode rows alone would not fit a step";
  waiting_.reserve(limits.waiting_max + limits.sequences_max);
  running_.reserve(limits.sequences_max);
  plan_.items.reserve(limits.sequences_max);
  shares_.reserve(limits.sequences_max);
}

void Scheduler::Add(Sequence& sequence) {
  CHECK(sequence.state == SequenceState::kNew && sequence.length > 0);
  CHECK(sequence.length < sequence.length_max);
  CHECK(pool_.layout().PagesFor(sequence.length_max) <= pool_.total()) << "it would never fit";
  CHECK(waiting_.size() < waiting_.capacity()) << waiting_.size() << " sequences wait";
  CHECK(waiting_.empty() || Older(waiting_.back(), &sequence));
  CHECK(running_.empty() || Older(running_.back(), &sequence));
  sequence.state = SequenceState::kWaiting;
  waiting_.push_back(&sequence);
}

void Scheduler::Remove(Sequence& sequence) {
  std::vector<Sequence*>& group = sequence.state == SequenceState::kRunning ? running_ : waiting_;
  const auto place = std::find(group.begin(), group.end(), &sequence);
  CHECK(place != group.end()) << "sequence " << sequence.order << " is not here";
  group.erase(place);
  ReleasePages(sequence);
  sequence.state = SequenceState::kEnded;
}

const StepPlan& Scheduler::Plan() {
  plan_.items.clear();
  plan_.rows = 0;
  plan_.logits_rows = 0;
  preempted_ = false;
  PlanDecode();
  Admit();
  PlanPrefill();
  CHECK(plan_.rows > 0 || (running_.empty() && waiting_.empty())) << "a step without progress";
  CHECK(plan_.rows <= limits_.rows_max) << plan_.rows;
  return plan_;
}

void Scheduler::Commit(base::Duration elapsed) {
  for (const PlannedRows& item : plan_.items) {
    item.sequence->computed += item.rows;
    CHECK(item.sequence->computed <= item.sequence->length);
  }
  if (plan_.rows == 0 || elapsed.ns <= 0) return;
  const double row_ns = static_cast<double>(elapsed.ns) / plan_.rows;
  // A few rows say little about many: the weights are read once whatever the number of rows.
  if (plan_.rows < kPrefillRowsMin) return;
  row_ns_ = row_ns_ == 0 ? row_ns : row_ns_ + kRowTimeWeight * (row_ns - row_ns_);
}

void Scheduler::PlanDecode() {
  // Oldest first; a victim of preemption is always at or behind the place we are at, so it is never
  // one that is planned already.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (!sequence.decoding()) continue;
    while (sequence.state == SequenceState::kRunning && !Grow(sequence, sequence.length)) {
      PreemptYoungest();
    }
    if (sequence.state == SequenceState::kRunning) PlanRows(sequence, 1);
  }
}

void Scheduler::Admit() {
  // Whoever was just preempted would come straight back in.
  if (preempted_) return;
  while (!waiting_.empty() && running_.size() < limits_.sequences_max) {
    Sequence& sequence = *waiting_.front();
    // Leave a page for each running sequence that may still grow, or it would soon preempt this
    // one.
    const auto growing =
        std::count_if(running_.begin(), running_.end(), [&](const Sequence* other) {
          return other->pages.size() < pool_.layout().PagesFor(other->length_max);
        });
    if (pool_.free() < pool_.layout().PagesFor(sequence.length) + growing) return;
    sequence.pages.reserve(pool_.layout().PagesFor(sequence.length_max));
    sequence.page_data.reserve(sequence.pages.capacity());
    CHECK(Grow(sequence, sequence.length));
    waiting_.erase(waiting_.begin());
    running_.push_back(&sequence);
    sequence.state = SequenceState::kRunning;
  }
}

void Scheduler::PlanPrefill() {
  uint32_t budget = PrefillBudget(plan_.rows);
  shares_.clear();
  for (Sequence* sequence : running_) {
    if (!sequence->decoding()) shares_.push_back({sequence, 0});
  }
  // Everybody served gets a row at least; with more prompts than rows, the oldest are served.
  if (shares_.size() > budget) shares_.resize(budget);
  // Equal shares; what a short prompt leaves over goes to the longer ones, so that it is done
  // first.
  std::sort(shares_.begin(), shares_.end(), [](const Share& a, const Share& b) {
    const uint32_t rows_a = a.sequence->remaining(), rows_b = b.sequence->remaining();
    return rows_a != rows_b ? rows_a < rows_b : Older(a.sequence, b.sequence);
  });
  for (size_t i = 0; i < shares_.size(); ++i) {
    const uint32_t left = static_cast<uint32_t>(shares_.size() - i);
    shares_[i].rows = std::min(shares_[i].sequence->remaining(), budget / left);
    budget -= shares_[i].rows;
  }
  std::sort(shares_.begin(), shares_.end(),
            [](const Share& a, const Share& b) { return Older(a.sequence, b.sequence); });
  for (const Share& share : shares_) PlanRows(*share.sequence, share.rows);
}

uint32_t Scheduler::PrefillBudget(uint32_t decode_rows) const {
  uint32_t rows = std::min(limits_.prefill_rows_max, limits_.rows_max - decode_rows);
  if (limits_.step_target.ns <= 0) return rows;
  if (row_ns_ <= 0) return std::min(rows, kPrefillRowsUnmeasured);
  const double affordable = static_cast<double>(limits_.step_target.ns) / row_ns_ - decode_rows;
  const double floor = std::min(kPrefillRowsMin, rows);
  return static_cast<uint32_t>(std::clamp(affordable, floor, static_cast<double>(rows)));
}

void Scheduler::PlanRows(Sequence& sequence, uint32_t rows) {
  const bool samples = rows == sequence.remaining();
  plan_.items.push_back({&sequence, sequence.computed, rows, samples});
  plan_.rows += rows;
  plan_.logits_rows += samples ? 1 : 0;
}

bool Scheduler::Grow(Sequence& sequence, uint32_t length) {
  const size_t needed = pool_.layout().PagesFor(length);
  if (sequence.pages.size() + pool_.free() < needed) return false;
  while (sequence.pages.size() < needed) {
    const kvcache::PageId page = *pool_.Allocate();
    sequence.pages.push_back(page);
    sequence.page_data.push_back(pool_.Data(page).data());
  }
  return true;
}

void Scheduler::ReleasePages(Sequence& sequence) {
  for (const kvcache::PageId page : sequence.pages) pool_.Release(page);
  sequence.pages.clear();
  sequence.page_data.clear();
  sequence.computed = 0;
}

void Scheduler::PreemptYoungest() {
  CHECK(running_.size() > 1) << "the oldest sequence fits alone";
  Sequence& sequence = *running_.back();
  running_.pop_back();
  ReleasePages(sequence);
  sequence.state = SequenceState::kWaiting;
  waiting_.insert(waiting_.begin(), &sequence);
  CHECK(waiting_.size() < 2 || Older(&sequence, waiting_[1]));
  preempted_ = true;
  ++preemptions_;
}

}  // namespace plumb::engine
