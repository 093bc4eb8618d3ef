// engine/scheduler_testing.h
// For tests: a scheduler with its pool and sequences that do nothing but grow. Every plan is
// checked against the pool and against what the scheduler's header promises.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "base/random.h"
#include "engine/scheduler.h"

namespace plumb::engine {

class World {
 public:
  static constexpr uint32_t kPageTokens = 16;

  World(uint32_t pages, SchedulerLimits limits)
      : limits_(Filled(limits)),
        pool_(kvcache::PagePool::Create({.page_tokens = kPageTokens, .page_bytes = 64},
                                        pages * kvcache::PagePool::kAlignment)
                  .value()),
        scheduler_(limits_, *pool_) {}
  ~World() {
    for (Sequence& sequence : sequences_) {
      if (sequence.state != SequenceState::kEnded) scheduler_.Remove(sequence);
    }
    EXPECT_EQ(pool_->free(), pool_->total());
  }

  Sequence& Add(uint32_t prompt, uint32_t answer, Priority priority = Priority::kDefault,
                uint64_t tenant = 0) {
    Sequence& sequence = sequences_.emplace_back();
    sequence.order = sequences_.size();
    sequence.length = prompt;
    sequence.length_max = prompt + answer;
    sequence.priority = priority;
    sequence.tenant = tenant;
    scheduler_.Add(sequence);
    return sequence;
  }

  // Drafts that a sequence asks for, and how many of those that it is granted turn out right.
  std::function<uint32_t(const Sequence&)> draft;
  std::function<uint32_t(uint32_t granted)> keep;

  // One step: plans, checks the plan, samples, commits it; ended sequences leave.
  const StepPlan& Step(base::Duration elapsed = {0}) {
    return Step([&](const StepShape&) { return elapsed; });
  }
  const StepPlan& Step(const std::function<base::Duration(const StepShape&)>& cost) {
    if (draft) {
      for (Sequence* sequence : scheduler_.running()) {
        const uint32_t most = sequence->length_max - sequence->length - 1;
        if (sequence->decoding()) sequence->drafts = std::min(draft(*sequence), most);
      }
    }
    const StepPlan& plan = scheduler_.Plan();
    Check(plan);
    for (const PlannedRows& item : plan.items) {
      Sequence& sequence = *item.sequence;
      if (item.position + item.rows < sequence.length) continue;
      sequence.length += 1 + (keep ? keep(sequence.drafts) : 0);
    }
    elapsed_ = cost(plan.shape());
    scheduler_.Commit(elapsed_);
    for (const PlannedRows& item : plan.items) {
      if (item.sequence != nullptr && item.sequence->length == item.sequence->length_max) {
        scheduler_.Remove(*item.sequence);
      }
    }
    return plan;
  }
  base::Duration elapsed() const { return elapsed_; }  // of the last step

  bool Idle() const { return scheduler_.running().empty() && scheduler_.waiting().empty(); }
  Scheduler& scheduler() { return scheduler_; }
  kvcache::PagePool& pool() { return *pool_; }

  void Check(const StepPlan& plan) {
    std::set<const Sequence*> seen;
    uint32_t rows = 0, logits_rows = 0, prompt_rows = 0;
    uint64_t keys = 0;
    for (const PlannedRows& item : plan.items) {
      const Sequence& sequence = *item.sequence;
      ASSERT_TRUE(seen.insert(&sequence).second) << "planned twice";
      ASSERT_EQ(sequence.state, SequenceState::kRunning);
      ASSERT_GE(item.rows, 1u);
      ASSERT_EQ(item.position, sequence.computed);
      const uint32_t end = item.position + item.rows;
      ASSERT_LE(end, sequence.length + sequence.drafts);
      ASSERT_LT(sequence.length + sequence.drafts, sequence.length_max);
      ASSERT_TRUE(sequence.drafts == 0 || end == sequence.length + sequence.drafts);
      uint32_t expected = end >= sequence.length ? 1 + sequence.drafts : 0;
      if (end > sequence.logits_from) {
        expected = std::max(expected, std::min(item.rows, end - sequence.logits_from));
      }
      ASSERT_EQ(item.logits_rows, expected);
      ASSERT_GE(sequence.pages.size() * kPageTokens, end);
      ASSERT_EQ(sequence.pages.size(), sequence.page_data.size());
      rows += item.rows;
      logits_rows += item.logits_rows;
      if (!sequence.decoding()) prompt_rows += item.rows;
      for (uint32_t row = item.position; row < end; ++row) keys += row + 1;
    }
    ASSERT_EQ(plan.rows, rows);
    ASSERT_EQ(plan.logits_rows, logits_rows);
    ASSERT_EQ(plan.keys, keys);
    ASSERT_LE(rows, limits_.rows_max);
    ASSERT_LE(logits_rows, limits_.logits_rows_max);
    ASSERT_LE(prompt_rows, limits_.prefill_rows_max);
    CheckQueues(seen);
  }

 private:
  static SchedulerLimits Filled(SchedulerLimits limits) {
    if (limits.logits_rows_max == 0) limits.logits_rows_max = limits.rows_max;
    return limits;
  }

  void CheckQueues(const std::set<const Sequence*>& planned) {
    size_t pages = 0;
    for (const Sequence* sequence : scheduler_.running()) pages += sequence->pages.size();
    ASSERT_EQ(pages + pool_->free(), pool_->total());
    ASSERT_LE(scheduler_.running().size(), limits_.sequences_max);
    for (const Sequence* waiting : scheduler_.waiting()) ASSERT_TRUE(waiting->pages.empty());
    for (const auto queue : {scheduler_.running(), scheduler_.waiting()}) {
      for (size_t i = 1; i < queue.size(); ++i) {
        ASSERT_LT(std::pair(queue[i - 1]->priority, queue[i - 1]->order),
                  std::pair(queue[i]->priority, queue[i]->order));
      }
    }
    // Progress: whoever is first has a row, and its tokens only grow.
    if (scheduler_.running().empty()) return;
    ASSERT_TRUE(planned.contains(scheduler_.running().front())) << "the first one stands still";
  }

  const SchedulerLimits limits_;
  std::unique_ptr<kvcache::PagePool> pool_;
  Scheduler scheduler_;
  std::deque<Sequence> sequences_;
  base::Duration elapsed_{0};
};

}  // namespace plumb::engine
