// engine/scheduler_test.cc
// Who computes what in a step, and that everybody ends. Every plan is checked against the pool.
#include "engine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "base/random.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kPageTokens = 16;

// A scheduler with its pool, and sequences that do nothing but grow.
class World {
 public:
  World(uint32_t pages, SchedulerLimits limits)
      : pool_(kvcache::PagePool::Create({.page_tokens = kPageTokens, .page_bytes = 64},
                                        pages * kvcache::PagePool::kAlignment)
                  .value()),
        scheduler_(limits, *pool_) {}
  ~World() {
    for (Sequence& sequence : sequences_) {
      if (sequence.state != SequenceState::kEnded) scheduler_.Remove(sequence);
    }
    EXPECT_EQ(pool_->free(), pool_->total());
  }

  Sequence& Add(uint32_t prompt, uint32_t answer) {
    Sequence& sequence = sequences_.emplace_back();
    sequence.order = sequences_.size();
    sequence.length = prompt;
    sequence.length_max = prompt + answer;
    scheduler_.Add(sequence);
    return sequence;
  }

  // One step: plans, checks the plan, commits it, samples; ended sequences leave.
  const StepPlan& Step(base::Duration elapsed = {0}) {
    const StepPlan& plan = scheduler_.Plan();
    Check(plan);
    scheduler_.Commit(elapsed);
    for (const PlannedRows& item : plan.items) {
      if (!item.samples) continue;
      if (++item.sequence->length == item.sequence->length_max) scheduler_.Remove(*item.sequence);
    }
    return plan;
  }

  bool Idle() const { return scheduler_.running().empty() && scheduler_.waiting().empty(); }
  Scheduler& scheduler() { return scheduler_; }
  kvcache::PagePool& pool() { return *pool_; }

 private:
  void Check(const StepPlan& plan) {
    std::set<const Sequence*> seen;
    uint32_t rows = 0, logits_rows = 0;
    for (const PlannedRows& item : plan.items) {
      const Sequence& sequence = *item.sequence;
      ASSERT_TRUE(seen.insert(&sequence).second) << "planned twice";
      ASSERT_EQ(sequence.state, SequenceState::kRunning);
      ASSERT_GE(item.rows, 1u);
      ASSERT_EQ(item.position, sequence.computed);
      ASSERT_LE(item.position + item.rows, sequence.length);
      ASSERT_EQ(item.samples, item.position + item.rows == sequence.length);
      ASSERT_GE(sequence.pages.size() * kPageTokens, item.position + item.rows);
      ASSERT_EQ(sequence.pages.size(), sequence.page_data.size());
      rows += item.rows;
      logits_rows += item.samples;
    }
    ASSERT_EQ(plan.rows, rows);
    ASSERT_EQ(plan.logits_rows, logits_rows);
    size_t pages = 0;
    for (const Sequence* sequence : scheduler_.running()) pages += sequence->pages.size();
    ASSERT_EQ(pages + pool_->free(), pool_->total());
    for (const Sequence* waiting : scheduler_.waiting()) {
      ASSERT_TRUE(waiting->pages.empty());
      for (const Sequence* running : scheduler_.running())
        ASSERT_LT(running->order, waiting->order);
    }
  }

  std::unique_ptr<kvcache::PagePool> pool_;
  Scheduler scheduler_;
  std::deque<Sequence> sequences_;
};

constexpr SchedulerLimits kLimits{
    .sequences_max = 8, .rows_max = 64, .prefill_rows_max = 32, .waiting_max = 100};

TEST(Scheduler, SamplesAfterTheWholePrompt) {
  World world(10, kLimits);
  Sequence& sequence = world.Add(40, 3);
  EXPECT_EQ(world.Step().logits_rows, 0u);  // 32 of 40
  const StepPlan& plan = world.Step();
  EXPECT_EQ(plan.rows, 8u);
  EXPECT_EQ(plan.logits_rows, 1u);
  EXPECT_EQ(world.Step().rows, 1u);
  world.Step();
  EXPECT_EQ(sequence.state, SequenceState::kEnded);
  EXPECT_TRUE(world.Idle());
  EXPECT_EQ(world.scheduler().Plan().rows, 0u);
}

TEST(Scheduler, TheFirstStepIsSmallUntilItsCostIsKnown) {
  SchedulerLimits limits{.sequences_max = 8,
                         .rows_max = 512,
                         .prefill_rows_max = 256,
                         .waiting_max = 100,
                         .step_target = base::Milliseconds(80)};
  World world(100, limits);
  world.Add(1000, 4);
  Scheduler& scheduler = world.scheduler();
  EXPECT_EQ(scheduler.Plan().rows, 32u);
  scheduler.Commit(base::Milliseconds(16));  // half a millisecond a row
  EXPECT_EQ(scheduler.Plan().rows, 160u);
  scheduler.Commit(base::Milliseconds(8));
  EXPECT_GT(scheduler.Plan().rows, 160u);
}

TEST(Scheduler, DecodeRowsComeFirst) {
  World world(20, kLimits);
  Sequence& first = world.Add(5, 10);
  world.Step();
  Sequence& second = world.Add(100, 10);
  const StepPlan& plan = world.Step();
  ASSERT_EQ(plan.items.size(), 2u);
  EXPECT_EQ(plan.items[0].sequence, &first);
  EXPECT_EQ(plan.items[0].rows, 1u);
  EXPECT_EQ(plan.items[1].sequence, &second);
  EXPECT_EQ(plan.items[1].rows, 32u);
}

TEST(Scheduler, AShortPromptIsNotStuckBehindALongOne) {
  World world(100, kLimits);
  Sequence& longer = world.Add(1000, 4);
  world.Step();
  Sequence& shorter = world.Add(20, 4);
  world.Step();  // 16 rows each
  EXPECT_EQ(shorter.computed, 16u);
  EXPECT_EQ(longer.computed, 48u);
  world.Step();  // the 4 that are left, and 28
  EXPECT_EQ(shorter.length, 21u);
  EXPECT_EQ(longer.computed, 76u);
}

TEST(Scheduler, WithMorePromptsThanRowsTheOldestAreServed) {
  World world(100, {.sequences_max = 8, .rows_max = 8, .prefill_rows_max = 3, .waiting_max = 9});
  for (int i = 0; i < 6; ++i) world.Add(50, 1);
  const StepPlan& plan = world.Step();
  ASSERT_EQ(plan.items.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(plan.items[i].sequence->order, i + 1);
}

TEST(Scheduler, AdmitsInOrderOfArrivalWhenPagesSuffice) {
  World world(10, kLimits);
  Sequence& first = world.Add(6 * kPageTokens, 1);
  Sequence& second = world.Add(6 * kPageTokens, 1);
  Sequence& third = world.Add(1, 1);  // would fit now, but is younger
  world.Step();
  EXPECT_EQ(first.state, SequenceState::kRunning);
  EXPECT_EQ(second.state, SequenceState::kWaiting);
  EXPECT_EQ(third.state, SequenceState::kWaiting);
}

TEST(Scheduler, PreemptsTheYoungestAndComputesItAgain) {
  World world(4, kLimits);
  Sequence& older = world.Add(kPageTokens, kPageTokens + 1);
  Sequence& younger = world.Add(kPageTokens, kPageTokens + 1);
  for (int step = 0; step < 100 && !world.Idle(); ++step) world.Step();
  EXPECT_TRUE(world.Idle());
  EXPECT_EQ(older.state, SequenceState::kEnded);
  EXPECT_EQ(younger.state, SequenceState::kEnded);

  World tight(3, kLimits);
  Sequence& first = tight.Add(kPageTokens - 2, kPageTokens + 10);
  Sequence& second = tight.Add(kPageTokens - 2, 2 * kPageTokens);
  uint32_t first_steps = 0;
  while (first.state != SequenceState::kEnded) {
    tight.Step();
    ++first_steps;
    ASSERT_LT(first_steps, 100u);
  }
  // The oldest is never held up: a step for the prompt and one for each further token.
  EXPECT_EQ(first_steps, kPageTokens + 10);
  EXPECT_GE(tight.scheduler().preemptions(), 1u);
  const uint32_t length = second.length;
  EXPECT_GT(length, kPageTokens - 2);
  while (!tight.Idle()) tight.Step();
  EXPECT_EQ(second.length, second.length_max);
}

TEST(Scheduler, PagesThatAPromptStillNeedsAreNotGivenToAnother) {
  World world(10, kLimits);
  world.Add(8 * kPageTokens, 1);
  world.Step();
  EXPECT_EQ(world.pool().free(), 8u);
  Sequence& second = world.Add(3 * kPageTokens, 1);
  world.Step();
  EXPECT_EQ(second.state, SequenceState::kWaiting);
  while (!world.Idle()) world.Step();
  EXPECT_EQ(world.scheduler().preemptions(), 0u);
}

TEST(Scheduler, AnOlderPromptTakesThePagesOfAYoungerAnswer) {
  World world(10, {.sequences_max = 8, .rows_max = 8, .prefill_rows_max = 2, .waiting_max = 9});
  Sequence& older = world.Add(8 * kPageTokens, 1);
  world.Step();
  Sequence& younger = world.Add(2, 60);
  uint32_t steps = 1;
  for (; older.state != SequenceState::kEnded; ++steps) {
    ASSERT_LT(steps, 200u);
    world.Step();
    if (testing::Test::HasFatalFailure()) return;
  }
  // It was slowed by the other's prompt in one step only.
  EXPECT_EQ(steps, 8 * kPageTokens / 2 + 1);
  EXPECT_EQ(world.scheduler().preemptions(), 1u);
  while (!world.Idle()) world.Step();
  EXPECT_EQ(younger.length, younger.length_max);
}

TEST(Scheduler, RemovingGivesThePagesBackAtOnce) {
  World world(10, kLimits);
  Sequence& sequence = world.Add(5 * kPageTokens, 9);
  world.Step();
  EXPECT_EQ(world.pool().free(), 8u);  // 32 rows: pages are taken as they are computed
  world.Step();
  EXPECT_EQ(world.pool().free(), 6u);
  world.scheduler().Remove(sequence);
  EXPECT_EQ(world.pool().free(), 10u);
}

TEST(Scheduler, AStepTargetLimitsPromptRows) {
  SchedulerLimits limits = kLimits;
  limits.step_target = base::Milliseconds(20);
  World world(100, limits);
  world.Add(1000, 1);
  EXPECT_EQ(world.Step(base::Milliseconds(32)).rows, 32u);  // nothing measured before: all
  EXPECT_EQ(world.Step(base::Milliseconds(20)).rows, 20u);  // a millisecond a row
  for (int i = 0; i < 20; ++i) world.Step(base::Seconds(1));
  EXPECT_EQ(world.Step().rows, 16u);  // never less: fewer rows cost nearly the same
}

TEST(Scheduler, EverySequenceEndsUnderRandomLoad) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    const uint32_t pages = static_cast<uint32_t>(3 + rng.Below(20));
    SchedulerLimits limits;
    limits.sequences_max = static_cast<uint32_t>(1 + rng.Below(10));
    limits.rows_max = limits.sequences_max + static_cast<uint32_t>(rng.Below(40));
    limits.prefill_rows_max = static_cast<uint32_t>(1 + rng.Below(40));
    limits.waiting_max = 40;
    limits.step_target = base::Milliseconds(static_cast<int64_t>(rng.Below(3)));
    World world(pages, limits);
    int left = 40, steps = 0;
    while (left > 0 || !world.Idle()) {
      if (left > 0 && rng.Below(4) == 0) {
        const uint32_t most = pages * kPageTokens;
        const uint32_t length = static_cast<uint32_t>(2 + rng.Below(most - 1));
        const uint32_t prompt = static_cast<uint32_t>(1 + rng.Below(length - 1));
        world.Add(prompt, length - prompt);
        --left;
      }
      world.Step(base::Milliseconds(static_cast<int64_t>(rng.Below(100))));
      if (testing::Test::HasFatalFailure()) return;
      ASSERT_LT(++steps, 100000) << "no progress";
    }
  }
}

}  // namespace
}  // namespace plumb::engine
