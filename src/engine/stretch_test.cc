// engine/stretch_test.cc
// Where the walk comes to stand on machines whose times scatter.
#include "engine/stretch.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace plumb::engine {
namespace {

constexpr base::Duration kAlone = base::Milliseconds(30);

base::Duration Times(base::Duration duration, double factor) {
  return {static_cast<int64_t>(static_cast<double>(duration.ns) * factor)};
}

// A machine whose steps take `bias` times what was planned, one in `one_in` of them `slow` times
// that.
struct Machine {
  double bias = 1;
  uint32_t one_in = 1000000;
  double slow = 1;

  double Draw(base::Rng& rng) const {
    return bias * (0.95 + 0.1 * rng.Uniform()) * (rng.Below(one_in) == 0 ? slow : 1);
  }
};

// The share of the last 2000 of 8000 mixed steps that took more than twice the slowest fiftieth of
// the others.
double ShareBeyond(const Machine& alone, const Machine& mixed, Stretch& stretch) {
  base::Rng rng(1);
  int beyond = 0;
  for (int step = 0; step < 8000; ++step) {
    stretch.Observe(kAlone, Times(kAlone, alone.Draw(rng)), false);
    const double ratio = stretch.factor() * mixed.Draw(rng);
    beyond += step >= 6000 && ratio > 2 * stretch.scatter();
    stretch.Observe(kAlone, Times(kAlone, ratio), true);
  }
  return beyond / 2000.0;
}

TEST(Stretch, IsLargestOnASteadyMachine) {
  Stretch stretch;
  EXPECT_EQ(ShareBeyond({}, {}, stretch), 0);
  EXPECT_GT(stretch.factor(), 1.7);
  EXPECT_LT(stretch.scatter(), 1.2);
}

TEST(Stretch, ShrinksWhereStepsWithPromptsTakeLongerThanPlanned) {
  Stretch stretch;
  EXPECT_LE(ShareBeyond({}, {.bias = 1.3}, stretch), 0.02);
  EXPECT_LT(stretch.factor(), 1.5);
  EXPECT_GT(stretch.factor(), 1.3);
}

TEST(Stretch, ShrinksWhereOneStepInTwentyIsSlow) {
  Stretch stretch;
  EXPECT_LE(ShareBeyond({}, {.one_in = 20, .slow = 1.5}, stretch), 0.03);
  EXPECT_LT(stretch.factor(), 1.4);
}

TEST(Stretch, DoesNotShrinkWhereAllStepsScatterAlike) {
  const Machine machine{.one_in = 20, .slow = 1.4};
  Stretch stretch;
  EXPECT_LE(ShareBeyond(machine, machine, stretch), 0.02);
  EXPECT_GT(stretch.factor(), 1.6);
  EXPECT_GT(stretch.scatter(), 1.3);
}

TEST(Stretch, StaysWithinItsBounds) {
  Stretch stretch;
  for (int step = 0; step < 1000; ++step) stretch.Observe(kAlone, Times(kAlone, 100), true);
  EXPECT_EQ(stretch.factor(), Stretch::kFactorMin);
  for (int step = 0; step < 1000; ++step) stretch.Observe(kAlone, Times(kAlone, 100), false);
  EXPECT_EQ(stretch.scatter(), Stretch::kScatterMax);
  for (int step = 0; step < 1000; ++step) stretch.Observe(kAlone, kAlone, true);
  EXPECT_EQ(stretch.factor(), Stretch::kFactorMax);
}

TEST(Stretch, LearnsNothingWithoutTimes) {
  Stretch stretch;
  const double before = stretch.factor();
  stretch.Observe({0}, kAlone, true);
  stretch.Observe(kAlone, {0}, false);
  EXPECT_EQ(stretch.factor(), before);
  EXPECT_EQ(stretch.scatter(), 1);
}

}  // namespace
}  // namespace plumb::engine
