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

Scheduler::Scheduler(const SchedulerLimits& limits, kvcache::PagePool& pool,
                     kvcache::PrefixTree* tree)
    : limits_(limits), pages_(pool, tree) {
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
  CHECK(pages_.layout().PagesFor(sequence.length_max) <= pages_.total()) << "it would never fit";
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
  pages_.Release(sequence);
  sequence.state = SequenceState::kEnded;
}

const StepPlan& Scheduler::Plan() {
  plan_.items.clear();
  plan_.rows = 0;
  plan_.logits_rows = 0;
  preempted_ = false;
  PlanDecode();
  const size_t admitted_from = running_.size();
  Admit();
  PlanPrefill(admitted_from);
  CHECK(plan_.rows > 0 || (running_.empty() && waiting_.empty())) << "a step without progress";
  CHECK(plan_.rows <= limits_.rows_max) << plan_.rows;
  return plan_;
}

void Scheduler::Commit(base::Duration elapsed) {
  for (const PlannedRows& item : plan_.items) {
    item.sequence->computed += item.rows;
    CHECK(item.sequence->computed <= item.sequence->length);
    pages_.Seal(*item.sequence);
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
    if (GrowOrPreempt(sequence, 1)) PlanRows(sequence, 1);
  }
}

void Scheduler::Admit() {
  // Whoever was just preempted would come straight back in.
  if (preempted_) return;
  // What the running ones still take for their prompts, and a page for each that may grow further,
  // or it would soon preempt the new one.
  uint32_t kept = 0;
  const kvcache::PageLayout& layout = pages_.layout();
  const auto keep = [&](size_t i) {
    const Sequence& sequence = *running_[i];
    kept += pages_.Needs(sequence, std::span(running_).first(i)) +
            (layout.PagesFor(sequence.length) < layout.PagesFor(sequence.length_max));
  };
  for (size_t i = 0; i < running_.size() && !waiting_.empty(); ++i) keep(i);
  while (!waiting_.empty() && running_.size() < limits_.sequences_max) {
    Sequence& sequence = *waiting_.front();
    if (!pages_.Begin(sequence, running_, kept)) return;
    waiting_.erase(waiting_.begin());
    running_.push_back(&sequence);
    sequence.state = SequenceState::kRunning;
    keep(running_.size() - 1);
  }
}

void Scheduler::PlanPrefill(size_t admitted_from) {
  uint32_t budget = PrefillBudget(plan_.rows);
  shares_.clear();
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    // Reuse may leave a single row to one that was just admitted.
    if (sequence.decoding() && i < admitted_from) continue;
    pages_.Adopt(sequence);
    shares_.push_back({&sequence, 0, pages_.PageInWork(sequence)});
  }
  DropWhoWaitForPages();
  // Everybody served gets a row at least; with more prompts than rows, the oldest are served.
  if (shares_.size() > budget) shares_.resize(budget);
  for (const Share& share : shares_) pages_.AdoptPartial(*share.sequence);
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
  // The victims of the one are behind it here, or planned last of all above.
  for (const Share& share : shares_) GrowOrPreempt(*share.sequence, share.rows);
  for (const Share& share : shares_) {
    if (share.sequence->state == SequenceState::kRunning) PlanRows(*share.sequence, share.rows);
  }
}

void Scheduler::DropWhoWaitForPages() {
  // Equal pages side by side, the oldest sequence first: it computes the page.
  std::sort(shares_.begin(), shares_.end(), [](const Share& a, const Share& b) {
    if (a.page != nullptr && b.page != nullptr && *a.page != *b.page) return *a.page < *b.page;
    if ((a.page == nullptr) != (b.page == nullptr)) return a.page == nullptr;
    return Older(a.sequence, b.sequence);
  });
  const auto end =
      std::unique(shares_.begin(), shares_.end(), [](const Share& kept, const Share& next) {
        return kept.page != nullptr && next.page != nullptr && *kept.page == *next.page;
      });
  shares_.erase(end, shares_.end());
  std::sort(shares_.begin(), shares_.end(),
            [](const Share& a, const Share& b) { return Older(a.sequence, b.sequence); });
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

bool Scheduler::GrowOrPreempt(Sequence& sequence, uint32_t rows) {
  while (sequence.state == SequenceState::kRunning) {
    if (pages_.Grow(sequence, sequence.computed + rows)) return true;
    PreemptYoungest();
  }
  return false;
}

void Scheduler::PreemptYoungest() {
  CHECK(running_.size() > 1) << "the oldest sequence fits alone";
  Sequence& sequence = *running_.back();
  running_.pop_back();
  // A prompt that is older than a decoding sequence may need its pages.
  if (!plan_.items.empty() && plan_.items.back().sequence == &sequence) {
    plan_.items.pop_back();
    --plan_.rows;
    --plan_.logits_rows;
  }
  pages_.Release(sequence);
  sequence.preempted = true;
  sequence.state = SequenceState::kWaiting;
  waiting_.insert(waiting_.begin(), &sequence);
  CHECK(waiting_.size() < 2 || Older(&sequence, waiting_[1]));
  preempted_ = true;
  ++preemptions_;
}

}  // namespace plumb::engine
