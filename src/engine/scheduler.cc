// engine/scheduler.cc
// The step, top down: admission (scheduler_admission.cc), a row for each stream, drafts, prompts
// (scheduler_prompts.cc); then who has its pages is in the plan.
#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::engine {

Scheduler::Scheduler(const SchedulerLimits& limits, kvcache::PagePool& pool,
                     kvcache::PrefixTree* tree, SequenceStates* states)
    : limits_(limits),
      pages_(pool, tree, states),
      fair_(limits.waiting_max + 4 * limits.sequences_max) {
  CHECK(limits.sequences_max >= 1 && limits.prefill_rows_max >= 1);
  CHECK(limits.sequences_max <= limits.rows_max) << "decode rows alone would not fit a step";
  CHECK(limits.sequences_max <= limits.logits_rows_max) << limits.logits_rows_max;
  waiting_.reserve(size_t{limits.waiting_max} + 3 * size_t{limits.sequences_max});
  running_.reserve(limits.sequences_max);
  streams_.reserve(limits.sequences_max);
  shares_.reserve(limits.sequences_max);
  plan_.items.reserve(limits.sequences_max);
}

void Scheduler::Add(Sequence& sequence) {
  CHECK(sequence.state == SequenceState::kNew && sequence.length > 0);
  CHECK(sequence.length <= sequence.length_max && sequence.has_room());
  CHECK(pages_.layout().PagesFor(sequence.length_max) <= pages_.total()) << "it would never fit";
  CHECK(sequence.order >= next_order_) << sequence.order;
  next_order_ = sequence.order + 1;
  fair_.Add(sequence);
  Enqueue(sequence);
}

void Scheduler::Remove(Sequence& sequence) {
  const bool waits = sequence.state == SequenceState::kWaiting;
  std::vector<Sequence*>& group = waits ? waiting_ : running_;
  const auto place = std::find(group.begin(), group.end(), &sequence);
  CHECK(place != group.end()) << "sequence " << sequence.order << " is not here";
  group.erase(place);
  if (waits) fair_.EndWait(sequence);
  fair_.Remove(sequence);
  pages_.End(sequence);
  sequence.state = SequenceState::kEnded;
  for (PlannedRows& item : plan_.items) {
    if (item.sequence == &sequence) item.sequence = nullptr;
  }
}

const StepPlan& Scheduler::Plan() {
  Admit();
  PlanStreams();
  shape_ = DecodeShape();
  alone_ = cost_.Predict(shape_);
  limit_ = StepLimit(cost_, targets(), shape_, Awaited());
  CollectPrompts();
  GrantDrafts();
  SharePrompts();
  Build();
  CHECK(plan_.rows > 0 || paused_ || (running_.empty() && waiting_.empty())) << "no progress";
  CHECK(plan_.rows <= limits_.rows_max) << plan_.rows;
  CHECK(plan_.logits_rows <= limits_.logits_rows_max) << plan_.logits_rows;
  return plan_;
}

void Scheduler::Commit(base::Duration elapsed) {
  for (const PlannedRows& item : plan_.items) {
    if (item.sequence == nullptr) continue;
    Sequence& sequence = *item.sequence;
    // Drafts that were not kept are as if they had never been computed.
    sequence.computed = std::min(item.position + item.rows, sequence.length - 1);
    sequence.drafts = 0;
    sequence.held.end = item.position + item.rows;
    pages_.Seal(sequence);
    if (sequence.full_pass && sequence.remaining() == 0) pages_.BeginAnew(sequence);
  }
  LearnStretch(elapsed);
  cost_.Observe(plan_.shape(), elapsed);
}

void Scheduler::LearnStretch(base::Duration elapsed) {
  // Where another limit counts, the factor is not to blame; nor where drafts take time besides.
  if (limits_.itl_target.ns > 0 || limits_.step_target.ns <= 0 || limit_ <= kItlFloor) return;
  if (streams_.empty() || plan_.rows != streams_.size() + prompt_rows_ || !Awaited()) return;
  stretch_.Observe(alone_, elapsed, prompt_rows_ > 0);
}

void Scheduler::PlanStreams() {
  streams_.clear();
  // By rank; a victim of preemption is always at or behind the place we are at, so it is never one
  // that is planned already.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    CHECK(sequence.has_room()) << sequence.drafts;
    if (!sequence.decoding()) {
      sequence.drafts = 0;
    } else if (GrowOrPreempt(sequence, 1)) {
      streams_.push_back(&sequence);
    }
  }
}

StepShape Scheduler::DecodeShape() const {
  StepShape shape;
  for (const Sequence* sequence : running_) {
    if (!sequence->decoding()) continue;
    ++shape.rows;
    ++shape.logits_rows;
    shape.keys += sequence->length;
  }
  return shape;
}

bool Scheduler::Awaited() const {
  return std::any_of(running_.begin(), running_.end(), [](const Sequence* sequence) {
    return sequence->decoding() && sequence->priority != Priority::kBatch;
  });
}

uint32_t Scheduler::DraftRoom(const StepShape& decode, size_t prompts) const {
  // A row with logits stays for each running sequence, and half of the rows for prompts.
  const uint32_t rows = limits_.rows_max - decode.rows;
  const uint32_t logits = limits_.logits_rows_max - static_cast<uint32_t>(running_.size());
  return std::min(prompts > 0 ? rows / 2 : rows, logits);
}

void Scheduler::GrantDrafts() {
  uint32_t longest = 0;
  for (const Sequence* sequence : streams_) longest = std::max(longest, sequence->drafts);
  if (longest == 0) return;
  const base::Duration limit = DraftLimit(cost_, targets(), shape_, limit_, !shares_.empty());
  const uint32_t room = DraftRoom(shape_, shares_.size());
  // The most that each may have alike.
  for (;; --longest) {
    StepShape shape = shape_;
    uint32_t drafts = 0;
    for (const Sequence* sequence : streams_) {
      const uint32_t granted = std::min(sequence->drafts, longest);
      drafts += granted;
      shape.keys += KeysOf(sequence->length, granted);
    }
    shape.rows += drafts;
    shape.logits_rows += drafts;
    if (drafts > room || (drafts > 0 && cost_.measured() && cost_.Predict(shape) > limit)) continue;
    for (Sequence* sequence : streams_) {
      sequence->drafts = std::min(sequence->drafts, longest);
    }
    shape_ = shape;
    return;
  }
}

void Scheduler::Build() {
  plan_.items.clear();
  plan_.rows = plan_.logits_rows = 0;
  plan_.keys = 0;
  for (Sequence* sequence : streams_) {
    if (sequence->state != SequenceState::kRunning) continue;
    // All that others need is theirs by now: what is left may hold guesses.
    const uint32_t end = sequence->computed + 1;
    if (!pages_.Grow(*sequence, end + sequence->drafts)) {
      const size_t held = sequence->pages.size() * pages_.layout().page_tokens;
      sequence->drafts = std::min(sequence->drafts, static_cast<uint32_t>(held - end));
    }
    PlanRows(*sequence, 1);
  }
  prompt_rows_ = 0;
  for (const Share& share : shares_) {
    if (share.sequence->state != SequenceState::kRunning || share.rows == 0) continue;
    PlanRows(*share.sequence, share.rows);
    prompt_rows_ += share.rows;
  }
}

void Scheduler::PlanRows(Sequence& sequence, uint32_t rows) {
  const uint32_t logits_rows = LogitsRows(sequence, rows) + sequence.drafts;
  rows += sequence.drafts;
  const uint64_t keys = KeysOf(sequence.computed, rows);
  plan_.items.push_back({&sequence, sequence.computed, rows, logits_rows});
  plan_.rows += rows;
  plan_.logits_rows += logits_rows;
  plan_.keys += keys;
  fair_.Charge(sequence, rows + cost_.KeyPrice() * static_cast<double>(keys));
}

StepForecast Scheduler::Foresee() const {
  StepForecast forecast;
  forecast.decode = DecodeShape();
  forecast.expected = forecast.decode;
  uint64_t prompts = 0, left = 0, position = 0;
  for (const Sequence* sequence : running_) {
    if (sequence->decoding()) continue;
    if (prompts++ == 0) position = sequence->computed;
    left += sequence->remaining();
  }
  forecast.prompt_rows = static_cast<uint32_t>(std::min<uint64_t>(prompt_rows_, left));
  forecast.expected.rows += forecast.prompt_rows;
  forecast.expected.keys += KeysOf(position, forecast.prompt_rows);
  const base::Duration limit =
      DraftLimit(cost_, targets(), forecast.decode,
                 StepLimit(cost_, targets(), forecast.decode, Awaited()), prompts > 0);
  uint32_t room = DraftRoom(forecast.decode, prompts);
  if (cost_.measured()) {
    // The most rows within the limit; the prediction never falls with more.
    StepForecast alone = forecast;
    alone.expected = forecast.decode;
    uint32_t low = 0;
    while (low < room) {
      const uint32_t middle = low + (room - low + 1) / 2;
      if (cost_.Predict(alone.WithDrafts(middle)) <= limit) {
        low = middle;
      } else {
        room = middle - 1;
      }
    }
  }
  forecast.drafts_max = room;
  return forecast;
}

StepShape StepForecast::WithDrafts(uint32_t drafts) const {
  // A draft looks at as many keys as its sequence's row, on average.
  const uint64_t keys_each = decode.rows > 0 ? decode.keys / decode.rows : 0;
  return {expected.rows + drafts, expected.logits_rows + drafts,
          expected.keys + drafts * keys_each};
}

}  // namespace plumb::engine
