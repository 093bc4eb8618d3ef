// engine/exp_sum_test.cc
// The exponential is close to std::exp, sums of weights are exact, and all is the same bits for
// every vector width.
#include "engine/exp_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
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

TEST(ExpSum, WeightsSumExactlyInAnyOrder) {
  constexpr uint64_t kSeed = 8;
  base::Rng rng(kSeed);
  std::vector<double> weights(100000);
  for (double& weight : weights) {
    const float x = static_cast<float>(-25 * rng.Uniform());
    weight = Weight(x);
    EXPECT_NEAR(weight, std::exp(double{x}), 3e-7 * std::exp(double{x}) + 0x1.0p-32);
    EXPECT_EQ(std::fmod(weight, 0x1.0p-32), 0);
  }
  const double forwards = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double backwards = std::accumulate(weights.rbegin(), weights.rend(), 0.0);
  EXPECT_EQ(forwards, backwards);
  EXPECT_EQ(Weight(0), 1.0f);
}

TEST(ExpSum, EveryTargetGivesTheSameBits) {
  constexpr uint64_t kSeed = 3;
  base::Rng rng(kSeed);
  const ExpKernels& baseline = *ExpKernelsFor(ExpTarget::kBaseline);
  for (const size_t count : {0, 1, 15, 16, 17, 31, 32, 33, 1000, 49152}) {
    std::vector<float> logits(count), expected(count), weights(count);
    for (float& logit : logits) logit = static_cast<float>(rng.Uniform() * 60 - 60);
    const double exp_sum = baseline.exp_sum(logits.data(), count, 0.5f);
    const double sum = baseline.weight_sum(logits.data(), count, 0.5f, 1.25f, expected.data());
    for (const ExpTarget target : {ExpTarget::kAvx2, ExpTarget::kAvx512}) {
      const ExpKernels* kernels = ExpKernelsFor(target);
      if (kernels == nullptr) continue;
      EXPECT_EQ(kernels->exp_sum(logits.data(), count, 0.5f), exp_sum) << count;
      EXPECT_EQ(kernels->weight_sum(logits.data(), count, 0.5f, 1.25f, weights.data()), sum);
      EXPECT_EQ(weights, expected) << count;
    }
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(expected[i], Weight((logits[i] - 0.5f) * 1.25f));
  }
}

}  // namespace
}  // namespace plumb::engine
