// engine/scheduler_admission.cc
// Who runs and who waits: admission by priority, fairness and arrival, as pages and seats allow,
// and preemption by those that outrank.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/scheduler.h"

namespace plumb::engine {
namespace {

void InsertByRank(std::vector<Sequence*>& group, Sequence& sequence) {
  CHECK(group.size() < group.capacity()) << group.size() << " sequences are here";
  group.insert(std::upper_bound(group.begin(), group.end(), &sequence, Outranks), &sequence);
}

}  // namespace

void Scheduler::Enqueue(Sequence& sequence) {
  InsertByRank(waiting_, sequence);
  sequence.state = SequenceState::kWaiting;
  fair_.Wait(sequence);
}

void Scheduler::Admit() {
  uint32_t kept = waiting_.empty() ? 0 : KeptPages();
  const Sequence* victim = nullptr;
  while (Sequence* next = NextToAdmit()) {
    // Who was just preempted for another does not come straight back.
    if (victim != nullptr && next->priority >= victim->priority) return;
    if (running_.size() < limits_.sequences_max && pages_.Begin(*next, running_, kept)) {
      kept += KeptFor(*next, running_);
      Start(*next);
      continue;
    }
    if (running_.empty() || running_.back()->priority <= next->priority) return;
    victim = running_.back();
    PreemptLast();
    kept = KeptPages();
  }
}

Sequence* Scheduler::NextToAdmit() const {
  Sequence* next = nullptr;
  // Those that have run go first, so that no more wait with a beginning than have seats; among
  // equals the first by arrival.
  std::pair<bool, double> least;
  for (Sequence* sequence : waiting_) {
    if (paused_ && !sequence->preempted && !sequence->begun) continue;
    if (next != nullptr && sequence->priority != next->priority) break;
    const std::pair key(!sequence->preempted, fair_.Served(*sequence));
    if (next != nullptr && key >= least) continue;
    next = sequence;
    least = key;
  }
  return next;
}

void Scheduler::Start(Sequence& sequence) {
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &sequence));
  fair_.EndWait(sequence);
  InsertByRank(running_, sequence);
  sequence.state = SequenceState::kRunning;
  starts_ += !sequence.preempted;
}

uint32_t Scheduler::KeptPages() const {
  uint32_t kept = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    kept += KeptFor(*running_[i], std::span(running_).first(i));
  }
  return kept;
}

uint32_t Scheduler::KeptFor(const Sequence& sequence, std::span<Sequence* const> others) const {
  // A page for each that may grow further, or it would soon preempt a new one.
  const kvcache::PageLayout& layout = pages_.layout();
  return pages_.Needs(sequence, others) +
         (layout.PagesFor(sequence.length) < layout.PagesFor(sequence.length_max));
}

bool Scheduler::GrowOrPreempt(Sequence& sequence, uint32_t rows) {
  while (sequence.state == SequenceState::kRunning) {
    if (pages_.Grow(sequence, sequence.computed + rows)) return true;
    CHECK(running_.size() > 1) << "the first sequence fits alone";
    PreemptLast();
  }
  return false;
}

void Scheduler::PreemptLast() {
  Sequence& sequence = *running_.back();
  running_.pop_back();
  pages_.Release(sequence);
  sequence.preempted = true;
  sequence.drafts = 0;
  Enqueue(sequence);
  ++preemptions_;
}

}  // namespace plumb::engine
