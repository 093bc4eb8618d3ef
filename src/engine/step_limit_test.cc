// engine/step_limit_test.cc: how long a step may take for the sake of guesses. Limits for prompts
// are tested with the scheduler that keeps them (scheduler_time_test.cc).
#include "engine/step_limit.h"

#include <gtest/gtest.h>

namespace plumb::engine {
namespace {

constexpr StepShape kOneRow{.rows = 1, .logits_rows = 1, .keys = 0};

// The limit for drafts of one stream whose steps take `alone_ms`.
int64_t DraftLimitMs(int64_t alone_ms, const StepTargets& targets) {
  StepCost cost;
  for (int i = 0; i < 20; ++i) cost.Observe(kOneRow, base::Milliseconds(alone_ms));
  const base::Duration limit = StepLimit(cost, targets, kOneRow, true);
  return DraftLimit(cost, targets, kOneRow, limit, false).ms();
}

TEST(StepLimit, GuessesMayStretchAStepThatHoldsNoPrompt) {
  const StepTargets automatic{.step = base::Milliseconds(80), .itl = {0}};
  EXPECT_EQ(DraftLimitMs(5, automatic), 80) << "what a step without streams may take";
  EXPECT_NEAR(DraftLimitMs(50, automatic), 200, 1) << "four times as long for several tokens";
  EXPECT_EQ(DraftLimitMs(100, automatic), 300) << "no longer";
  EXPECT_NEAR(DraftLimitMs(400, automatic), 600, 2) << "what prompts would have";
}

TEST(StepLimit, ATargetHoldsForGuessesToo) {
  EXPECT_EQ(DraftLimitMs(50, {.step = base::Milliseconds(80), .itl = base::Milliseconds(70)}), 70);
}

}  // namespace
}  // namespace plumb::engine
