// engine/scheduler_test.cc
// Who computes what in a step, pages, preemption and drafts. Shares and priorities:
// scheduler_share_test.cc; time: scheduler_time_test.cc; that everybody ends:
// scheduler_load_test.cc.
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/scheduler_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kPageTokens = World::kPageTokens;
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

TEST(Scheduler, ASequenceMayBeRemovedBetweenPlanAndCommit) {
  World world(10, kLimits);
  Sequence& first = world.Add(20, 5);
  Sequence& second = world.Add(10, 5);
  const StepPlan& plan = world.scheduler().Plan();
  ASSERT_EQ(plan.items.size(), 2u);
  world.scheduler().Remove(first);
  EXPECT_EQ(plan.items[0].sequence, nullptr);
  ++second.length;
  world.scheduler().Commit(base::Milliseconds(1));
  EXPECT_EQ(second.computed, 10u);
  EXPECT_EQ(first.state, SequenceState::kEnded);
  EXPECT_EQ(world.pool().free(), 9u);
}

TEST(Scheduler, WithMorePromptsThanRowsTheFirstAreServedAndAllEnd) {
  World world(100, {.sequences_max = 8, .rows_max = 8, .prefill_rows_max = 3, .waiting_max = 9});
  std::vector<Sequence*> prompts;
  for (int i = 0; i < 6; ++i) prompts.push_back(&world.Add(50, 1));
  EXPECT_EQ(world.Step().items.front().sequence, prompts[0]);
  int steps = 1;
  for (; !world.Idle(); ++steps) world.Step();
  EXPECT_EQ(steps, 6 * 50 / 3);
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
  // It was slowed by the other's prompt in two steps at most, once more after its preemption.
  EXPECT_LE(steps, 8 * kPageTokens / 2 + 2);
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

TEST(Scheduler, KeptDraftsAreComputedAndOthersAreNot) {
  World world(10, kLimits);
  Sequence& sequence = world.Add(10, 40);
  world.Step();
  EXPECT_EQ(sequence.computed, 10u);
  world.draft = [](const Sequence&) { return 5; };
  world.keep = [](uint32_t granted) { return granted > 2 ? 2 : granted; };
  const StepPlan& plan = world.Step();
  EXPECT_EQ(plan.rows, 6u);
  EXPECT_EQ(plan.logits_rows, 6u);
  EXPECT_EQ(sequence.length, 14u);
  EXPECT_EQ(sequence.computed, 13u);
  EXPECT_EQ(sequence.drafts, 0u);
  while (!world.Idle()) world.Step();
  EXPECT_EQ(sequence.length, 50u);
}

TEST(Scheduler, DraftsAreCutToTheRowsThatAreLeft) {
  World world(10, {.sequences_max = 4,
                   .rows_max = 12,
                   .logits_rows_max = 9,
                   .prefill_rows_max = 8,
                   .waiting_max = 9});
  for (int i = 0; i < 2; ++i) world.Add(4, 40);
  world.Step();
  world.draft = [](const Sequence&) { return 9; };
  // Nine rows with logits for two: three drafts each.
  EXPECT_EQ(world.Step().logits_rows, 8u);
  world.Add(30, 2);
  const StepPlan& plan = world.Step();
  // Half of the ten rows beside the two; a row with logits stays for the third.
  EXPECT_EQ(plan.logits_rows, 6u);
  EXPECT_EQ(plan.rows, 12u);
}

TEST(Scheduler, NobodyGivesAPageBackForAGuess) {
  World world(3, {.sequences_max = 2, .rows_max = 64, .prefill_rows_max = 32, .waiting_max = 9});
  Sequence& first = world.Add(kPageTokens - 2, 30);
  Sequence& second = world.Add(kPageTokens - 2, 30);
  world.Step();
  world.draft = [](const Sequence&) { return 8; };
  world.keep = [](uint32_t) { return 0; };
  // One page is free: a guess of the first takes it, the second's end with its page.
  const StepPlan& plan = world.Step();
  EXPECT_EQ(world.pool().free(), 0u);
  ASSERT_EQ(plan.items.size(), 2u);
  EXPECT_EQ(plan.items[0].rows, 9u);
  EXPECT_EQ(plan.items[1].rows, 2u);
  EXPECT_EQ(world.scheduler().preemptions(), 0u);
  while (first.state != SequenceState::kEnded || second.state != SequenceState::kEnded) {
    world.Step();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Scheduler, PromptRowsWhoseLogitsAreWantedAreCutToWhatAStepHas) {
  World world(20, {.sequences_max = 4,
                   .rows_max = 64,
                   .logits_rows_max = 10,
                   .prefill_rows_max = 64,
                   .waiting_max = 9});
  Sequence& wanting = world.Add(40, 2);
  wanting.logits_from = 0;
  world.Add(100, 2);
  const StepPlan& plan = world.Step();
  ASSERT_EQ(plan.items.size(), 2u);
  // Ten, less one that stays for the other; the other has the rest of the step.
  EXPECT_EQ(plan.items[0].rows, 9u);
  EXPECT_EQ(plan.items[0].logits_rows, 9u);
  EXPECT_EQ(plan.rows, 64u);
  wanting.logits_from = wanting.computed;
  while (!world.Idle()) {
    world.Step();
    if (wanting.logits_from < 40) wanting.logits_from = std::min(wanting.computed, 40u);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Scheduler, WhilePausedOnlyThoseGoOnThatHaveRun) {
  World world(20, {.sequences_max = 2, .rows_max = 64, .prefill_rows_max = 32, .waiting_max = 9});
  Sequence& first = world.Add(5, 3);
  world.Step();
  world.scheduler().Pause(true);
  Sequence& second = world.Add(5, 3);
  world.Step();
  world.Step();
  EXPECT_EQ(first.state, SequenceState::kEnded);
  EXPECT_EQ(world.Step().rows, 0u);
  EXPECT_EQ(second.state, SequenceState::kWaiting);
  world.scheduler().Pause(false);
  EXPECT_EQ(world.Step().rows, 5u);
  EXPECT_EQ(world.scheduler().starts(), 2u);
}

}  // namespace
}  // namespace plumb::engine
