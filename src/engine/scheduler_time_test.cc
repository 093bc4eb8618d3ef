// engine/scheduler_time_test.cc
// The time of steps: what a long prompt does to running streams and to a short prompt behind it, on
// a machine whose step times are a function of rows and keys, with noise. The function is like the
// measured one of a small model on two cores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/scheduler_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kDraftsForTest = 8;

constexpr SchedulerLimits kLimits{.sequences_max = 16,
                                  .rows_max = 512,
                                  .prefill_rows_max = 256,
                                  .waiting_max = 100,
                                  .step_target = base::Milliseconds(80)};

// Weights read once: the first rows cost little each, further ones are computed one by one.
class Machine {
 public:
  explicit Machine(uint64_t seed, double noise = 0.05) : rng_(seed), noise_(noise) {}

  base::Duration operator()(const StepShape& shape) {
    const double rows = shape.rows, few = std::min(rows, 4.0);
    const double ms = 4 + 0.2 * few + 0.6 * (rows - few) + 0.3 * shape.logits_rows +
                      0.0002 * static_cast<double>(shape.keys);
    const double factor = 1 + noise_ * (2 * rng_.Uniform() - 1);
    return {static_cast<int64_t>(ms * slowness * factor * 1e6)};
  }
  double slowness = 1;

 private:
  base::Rng rng_;
  const double noise_;
};

double Percentile99(std::vector<double> values) {
  const auto place = values.begin() + static_cast<ptrdiff_t>(values.size() * 99 / 100);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// Running streams whose steps are timed.
class TimedWorld {
 public:
  explicit TimedWorld(SchedulerLimits limits, uint64_t seed = 1)
      : machine_(seed), world_(10'000, limits) {}

  void AddStreams(int count) {
    for (int i = 0; i < count; ++i) world_.Add(100, 20'000);
    while (world_.scheduler().Foresee().decode.rows < static_cast<uint32_t>(count)) Step();
    Steps(200);
    step_ms.clear();
  }
  void Steps(int count) {
    while (count-- > 0) Step();
  }
  const StepPlan& Step() {
    const StepPlan& plan = world_.Step(std::ref(machine_));
    step_ms.push_back(world_.elapsed().seconds() * 1e3);
    return plan;
  }
  // Milliseconds until the prompt's first token.
  double FirstToken(const Sequence& sequence) {
    const uint32_t prompt = sequence.length;
    double ms = 0;
    while (sequence.length == prompt) {
      Step();
      ms += step_ms.back();
    }
    return ms;
  }
  World& world() { return world_; }
  Machine& machine() { return machine_; }

  std::vector<double> step_ms;

 private:
  Machine machine_;
  World world_;
};

TEST(SchedulerTime, TheFirstStepIsSmallUntilItsCostIsKnown) {
  World world(100, kLimits);
  world.Add(1000, 4);
  EXPECT_EQ(world.Step(base::Milliseconds(16)).rows, 32u);  // half a millisecond a row
  const uint32_t second = world.Step(base::Milliseconds(75)).rows;
  EXPECT_GE(second, 145u);
  EXPECT_LE(second, 160u);
}

TEST(SchedulerTime, AStepWithoutStreamsTakesItsTarget) {
  TimedWorld timed(kLimits);
  const Sequence& sequence = timed.world().Add(16'000, 2);
  timed.Steps(5);
  timed.step_ms.clear();
  while (sequence.length == 16'000) timed.Step();
  timed.step_ms.pop_back();  // what was left
  EXPECT_LE(Percentile99(timed.step_ms), 80 * 1.08);
  EXPECT_GE(*std::min_element(timed.step_ms.begin(), timed.step_ms.end()), 60);
}

TEST(SchedulerTime, ALongPromptDoesNotDoubleTheTimeBetweenTokens) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    TimedWorld with(kLimits, seed), without(kLimits, seed);
    with.AddStreams(8);
    without.AddStreams(8);
    const Sequence& prompt = with.world().Add(16'000, 2);
    int steps = 0;
    for (; prompt.length == 16'000; ++steps) {
      ASSERT_LT(steps, 20'000);
      with.Step();
      without.Step();
    }
    const double ratio = Percentile99(with.step_ms) / Percentile99(without.step_ms);
    EXPECT_LE(ratio, 2.0);
    EXPECT_GE(ratio, 1.4) << "the time that is allowed is used";
    RecordProperty("p99_ratio_" + std::to_string(seed), std::to_string(ratio));
    RecordProperty("steps", steps);
  }
}

TEST(SchedulerTime, AShortPromptBehindALongOneHasItsFirstTokenSoon) {
  TimedWorld with(kLimits), without(kLimits);
  with.AddStreams(8);
  without.AddStreams(8);
  const Sequence& prompt = with.world().Add(16'000, 2);
  for (const uint32_t at : {100u, 8'000u, 14'000u}) {
    while (prompt.computed < at) {
      with.Step();
      without.Step();
    }
    const double alone = without.FirstToken(without.world().Add(100, 2));
    const double behind = with.FirstToken(with.world().Add(100, 2));
    EXPECT_LE(behind, 3 * alone) << "at " << at;
    RecordProperty("first_token_ratio_" + std::to_string(at), std::to_string(behind / alone));
  }
}

TEST(SchedulerTime, AGivenTargetIsKept) {
  SchedulerLimits limits = kLimits;
  limits.itl_target = base::Milliseconds(40);
  TimedWorld timed(limits);
  timed.AddStreams(8);
  const Sequence& prompt = timed.world().Add(8'000, 2);
  timed.Steps(5);
  timed.step_ms.clear();
  while (prompt.length == 8'000) timed.Step();
  EXPECT_LE(Percentile99(timed.step_ms), 40 * 1.08);
  std::nth_element(timed.step_ms.begin(), timed.step_ms.begin() + 10, timed.step_ms.end());
  EXPECT_GE(timed.step_ms[10], 30);
}

TEST(SchedulerTime, ATargetThatCannotBeKeptStillLetsPromptsIn) {
  SchedulerLimits limits = kLimits;
  limits.itl_target = base::Milliseconds(1);
  TimedWorld timed(limits);
  timed.AddStreams(8);
  const Sequence& prompt = timed.world().Add(500, 2);
  int steps = 0;
  for (; prompt.length == 500; ++steps) timed.Step();
  EXPECT_LE(steps, 500);
  EXPECT_LE(Percentile99(timed.step_ms), 2 * timed.step_ms.front());
}

TEST(SchedulerTime, BatchStreamsHaveNobodyWhoWaits) {
  TimedWorld timed(kLimits);
  for (int i = 0; i < 8; ++i) timed.world().Add(100, 2'000, Priority::kBatch);
  timed.Steps(100);
  const Sequence& prompt = timed.world().Add(4'000, 2, Priority::kBatch);
  timed.Step();
  timed.step_ms.clear();
  for (int i = 0; i < 10; ++i) timed.Step();
  EXPECT_LT(prompt.computed, 4'000u);
  EXPECT_GE(timed.step_ms.back(), 65);
}

TEST(SchedulerTime, AMachineThatBecomesSlowerIsFollowed) {
  TimedWorld timed(kLimits);
  timed.AddStreams(8);
  const Sequence& prompt = timed.world().Add(16'000, 2);
  timed.Steps(100);
  timed.machine().slowness = 2;
  timed.Steps(20);
  timed.step_ms.clear();
  timed.Steps(200);
  const double with = Percentile99(timed.step_ms);
  timed.world().scheduler().Remove(*timed.world().scheduler().running().back());
  EXPECT_EQ(prompt.state, SequenceState::kEnded);
  timed.step_ms.clear();
  timed.Steps(200);
  EXPECT_LE(with, 2 * Percentile99(timed.step_ms));
}

TEST(SchedulerTime, DraftsHaveRoomAloneAndHalfOfItBesidePrompts) {
  SchedulerLimits limits = kLimits;
  limits.itl_target = base::Milliseconds(40);
  TimedWorld timed(limits);
  timed.AddStreams(4);
  timed.world().draft = [](const Sequence&) { return kDraftsForTest; };
  timed.world().keep = [](uint32_t) { return 0; };
  timed.Steps(50);
  EXPECT_EQ(timed.Step().rows, 4 * (1 + kDraftsForTest));
  timed.world().Add(4'000, 2);
  timed.Steps(50);
  const StepPlan& plan = timed.Step();
  const uint32_t prompt_rows = plan.items.back().rows;
  uint32_t drafts = 0;
  for (size_t i = 0; i < 4; ++i) drafts += plan.items[i].rows - 1;
  EXPECT_GT(drafts, 0u);
  EXPECT_GT(prompt_rows, 0u);
  EXPECT_LT(drafts, 4 * kDraftsForTest);
  EXPECT_LE(timed.step_ms.back(), 40 * 1.1);
}

TEST(SchedulerTime, WhatIsForeseenIsWhatIsPlanned) {
  TimedWorld timed(kLimits);
  timed.AddStreams(8);
  timed.world().Add(16'000, 2);
  timed.Steps(100);
  const StepForecast forecast = timed.world().scheduler().Foresee();
  EXPECT_EQ(forecast.decode.rows, 8u);
  EXPECT_EQ(forecast.decode.logits_rows, 8u);
  EXPECT_GT(forecast.drafts_max, 0u);
  const StepPlan& plan = timed.Step();
  EXPECT_NEAR(forecast.expected.rows, plan.rows, 4);
  EXPECT_EQ(forecast.prompt_rows, forecast.expected.rows - 8);
  EXPECT_EQ(forecast.WithDrafts(3).rows, forecast.expected.rows + 3);
  const double predicted = timed.world().scheduler().cost().Predict(plan.shape()).seconds();
  EXPECT_NEAR(predicted * 1e3, timed.step_ms.back(), 0.1 * timed.step_ms.back());
}

}  // namespace
}  // namespace plumb::engine
