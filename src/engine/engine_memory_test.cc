// engine/engine_memory_test.cc: what the user gives is all that is taken, whatever the model needs
// beside its pages, and a division that cannot work is refused by name.
#include "engine/engine_memory.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace plumb::engine {
namespace {

constexpr uint64_t kMiB = 1u << 20;

// Of the released DeepSeek-V4.1-Flash, about.
model::ModelInfo WithStates() {
  model::ModelInfo info;
  info.page_bytes = 113'920;
  info.state_bytes = 3'500'000;
  info.checkpoint_bytes = 1'351'692;
  info.replay_rows = 140;
  return info;
}

uint64_t Total(const MemoryPlan& plan) {
  return plan.page_bytes + plan.state_bytes + plan.checkpoint_bytes;
}

uint64_t PageStride(const model::ModelInfo& info) {
  return kvcache::PagePool::StrideBytes({.page_bytes = info.page_bytes});
}

TEST(MemoryPlan, WithoutStatesAllIsForPages) {
  model::ModelInfo info;
  info.page_bytes = 5000;
  const MemoryPlan plan = MemoryPlan::Make(info, {.kv_budget_bytes = 10 * kMiB}).value();
  EXPECT_EQ(plan.page_bytes, 10 * kMiB / 8192 * 8192);
  EXPECT_EQ(plan.state_bytes + plan.checkpoint_bytes, 0u);
  EXPECT_TRUE(plan.reuses);
}

TEST(MemoryPlan, StatesAndCheckpointsAreWithinTheBudget) {
  base::Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    model::ModelInfo info = WithStates();
    info.page_bytes = 1 + rng.Below(1 << 18);
    info.state_bytes = 1 + rng.Below(1 << 22);
    info.checkpoint_bytes = rng.Below(4) == 0 ? 0 : 1 + rng.Below(1 << 21);
    const EngineOptions options{
        .kv_budget_bytes = rng.Below(uint64_t{1} << (15 + rng.Below(18))),
        .sequences_max = static_cast<uint32_t>(1 + rng.Below(80)),
        .prefix_cache = rng.Below(4) > 0,
        .checkpoints_max = static_cast<uint32_t>(rng.Below(2) * rng.Below(50))};
    SCOPED_TRACE(i);
    const auto plan = MemoryPlan::Make(info, options);
    if (!plan.ok()) {
      EXPECT_EQ(plan.status().code(), base::Code::kInvalidArgument);
      EXPECT_TRUE(plan.status().field() == "kv_budget_bytes" ||
                  (plan.status().field() == "checkpoints_max" && options.checkpoints_max > 0))
          << plan.status().ToString();
      continue;
    }
    ASSERT_LE(Total(*plan), options.kv_budget_bytes);
    EXPECT_GE(plan->page_bytes, PageStride(info));
    EXPECT_EQ(plan->seats, options.sequences_max);
    EXPECT_LE(plan->checkpoints, plan->page_bytes / PageStride(info)) << "each hangs on a page";
    EXPECT_EQ(plan->checkpoints > 0, plan->reuses);
    // What is left over is less than a page.
    EXPECT_LT(options.kv_budget_bytes - Total(*plan), PageStride(info));
  }
}

TEST(MemoryPlan, AnEighthOfWhatStatesLeaveIsForCheckpointsOrSomeForEachSequence) {
  const model::ModelInfo info = WithStates();
  const MemoryPlan large =
      MemoryPlan::Make(info, {.kv_budget_bytes = 64'000 * kMiB, .sequences_max = 64}).value();
  const uint64_t left = 64'000 * kMiB - large.state_bytes;
  EXPECT_NEAR(static_cast<double>(large.checkpoint_bytes), static_cast<double>(left) / 8, 2e6);
  const MemoryPlan some =
      MemoryPlan::Make(info, {.kv_budget_bytes = 300 * kMiB, .sequences_max = 8}).value();
  EXPECT_EQ(some.checkpoints, 32u);
  const MemoryPlan few =
      MemoryPlan::Make(info, {.kv_budget_bytes = 100 * kMiB, .sequences_max = 8}).value();
  EXPECT_LE(few.checkpoint_bytes, (100 * kMiB - few.state_bytes) / 4);
  EXPECT_GT(few.checkpoints, 0u);
}

TEST(MemoryPlan, AsManyCheckpointsAsWereAskedFor) {
  const EngineOptions options{
      .kv_budget_bytes = 500 * kMiB, .sequences_max = 4, .checkpoints_max = 100};
  EXPECT_EQ(MemoryPlan::Make(WithStates(), options)->checkpoints, 100u);
}

TEST(MemoryPlan, RefusesByNameWhatLeavesNoPage) {
  const model::ModelInfo info = WithStates();
  const auto field = [&](const EngineOptions& options) {
    return MemoryPlan::Make(info, options).status().field();
  };
  EXPECT_EQ(field({.kv_budget_bytes = 100 * kMiB, .sequences_max = 64}), "kv_budget_bytes");
  EXPECT_EQ(field({.kv_budget_bytes = 0, .sequences_max = 1}), "kv_budget_bytes");
  EXPECT_EQ(
      field({.kv_budget_bytes = 100 * kMiB, .sequences_max = 1, .checkpoints_max = 1'000'000}),
      "checkpoints_max");
}

TEST(MemoryPlan, ABudgetForPagesHoldsThem) {
  const model::ModelInfo info = WithStates();
  for (const uint32_t pages : {1u, 7u, 1000u}) {
    for (const uint32_t checkpoints : {0u, 1u, 300u}) {
      EngineOptions options{.sequences_max = 5, .checkpoints_max = std::min(pages, checkpoints)};
      options.kv_budget_bytes = MemoryPlan::BudgetFor(info, options, pages);
      const MemoryPlan plan = MemoryPlan::Make(info, options).value();
      if (checkpoints == 0) {
        EXPECT_GE(plan.page_bytes, pages * PageStride(info) * 9 / 10) << pages;
      } else {
        EXPECT_EQ(plan.page_bytes, pages * PageStride(info)) << pages << " " << checkpoints;
        EXPECT_EQ(plan.checkpoints, options.checkpoints_max);
      }
    }
  }
}

TEST(MemoryPlan, WithoutReuseThereAreNoCheckpoints) {
  const MemoryPlan plan =
      MemoryPlan::Make(WithStates(),
                       {.kv_budget_bytes = 100 * kMiB, .sequences_max = 4, .prefix_cache = false})
          .value();
  EXPECT_FALSE(plan.reuses);
  EXPECT_EQ(plan.checkpoint_bytes, 0u);
}

}  // namespace
}  // namespace plumb::engine
