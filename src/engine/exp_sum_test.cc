// engine/exp_sum_test.cc: close to std::exp, and the same bits for every vector width.
#include "engine/exp_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace plumb::engine {
namespace {

TEST(ExpSum, IsCloseToTheExactExponential) {
  double error_max = 0;
  for (int i = 0; i <= 860000; ++i) {
    const float x = -1e-4f * static_cast<float>(i);
    if (x < -86) break;
    const double exact = std::exp(double{x});
    error_max = std::max(error_max, std::abs(ExpNegative(x) - exact) / exact);
  }
  EXPECT_LT(error_max, 3e-7);
  EXPECT_EQ(ExpNegative(0), 1.0f);
}

TEST(ExpSum, FarBelowItStaysFinite) {
  EXPECT_EQ(ExpNegative(-1e30f), ExpNegative(-86));
  EXPECT_EQ(ExpNegative(-HUGE_VALF), ExpNegative(-86));
  EXPECT_GT(ExpNegative(-86), 0);
}

TEST(ExpSum, EveryTargetGivesTheSameBits) {
  constexpr uint64_t kSeed = 3;
  base::Rng rng(kSeed);
  for (const size_t count : {0, 1, 15, 16, 17, 31, 32, 33, 1000, 49152}) {
    std::vector<float> logits(count);
    for (float& logit : logits) logit = static_cast<float>(rng.Uniform() * 60 - 60);
    std::vector<float> expected(count), weights(count);
    const double sum = ExpSumOn(ExpTarget::kBaseline, logits, 0.0f, 1.25f, expected.data());
    for (const ExpTarget target : {ExpTarget::kAvx2, ExpTarget::kAvx512}) {
      if (!HasExpTarget(target)) continue;
      EXPECT_EQ(ExpSumOn(target, logits, 0.0f, 1.25f, weights.data()), sum) << count;
      EXPECT_EQ(weights, expected) << count;
      EXPECT_EQ(ExpSumOn(target, logits, 0.0f, 1.25f, nullptr), sum) << count;
    }
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(expected[i], ExpNegative(logits[i] * 1.25f));
  }
}

}  // namespace
}  // namespace plumb::engine
