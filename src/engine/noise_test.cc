// engine/noise_test.cc: noise is a pure function of its key, never leaves its bounds, and is
// distributed as the sampler's exactness needs.
#include "engine/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace plumb::engine {
namespace {

double Time(const NoiseKey& key, uint32_t token) {
  return DrawToken(key, DrawBlock(key, token / kNoiseBlock), token);
}

TEST(Noise, DependsOnEveryPartOfItsKey) {
  const NoiseKey key{.seed = 1, .sample_index = 2, .position = 3};
  const double time = Time(key, 200);
  EXPECT_EQ(Time(key, 200), time);
  EXPECT_NE(Time({uint64_t{1} << 40 | 1, 2, 3}, 200), time);
  EXPECT_NE(Time({1, 3, 3}, 200), time);
  EXPECT_NE(Time({1, 2, 4}, 200), time);
  EXPECT_NE(Time(key, 201), time);
}

TEST(Noise, NoTokenComesBeforeItsBlock) {
  for (uint32_t position = 0; position < 200; ++position) {
    const NoiseKey key{.seed = 9, .sample_index = 0, .position = position};
    const BlockNoise block = DrawBlock(key, 5);
    EXPECT_GT(block.time, 0);
    EXPECT_EQ(block.first_token / kNoiseBlock, 5u);
    EXPECT_EQ(DrawToken(key, block, block.first_token), block.time);
    for (uint32_t token = 5 * kNoiseBlock; token < 6 * kNoiseBlock; ++token) {
      EXPECT_GE(DrawToken(key, block, token), block.time);
    }
  }
}

// One-sample Kolmogorov-Smirnov statistic of `times` against the standard exponential.
double KolmogorovSmirnov(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const double count = static_cast<double>(times.size());
  double distance = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const double cdf = 1 - std::exp(-times[i]);
    distance = std::max(
        {distance, cdf - static_cast<double>(i) / count, static_cast<double>(i + 1) / count - cdf});
  }
  return distance * std::sqrt(count);
}

// 1.95 is the statistic's 0.1 % quantile; the seeds are fixed, so this either holds or it does not.
TEST(Noise, ATokensTimesOverPositionsAreStandardExponential) {
  for (const uint32_t token : {0u, 1u, 127u, 128u, 50000u}) {
    std::vector<double> times;
    for (uint32_t position = 0; position < 20000; ++position)
      times.push_back(Time({77, 0, position}, token));
    EXPECT_LT(KolmogorovSmirnov(times), 1.95) << token;
  }
}

TEST(Noise, ABlocksTimesAtOnePositionAreStandardExponential) {
  std::vector<double> times;
  for (uint32_t token = 0; token < 300 * kNoiseBlock; ++token)
    times.push_back(Time({5, 1, 42}, token));
  EXPECT_LT(KolmogorovSmirnov(times), 1.95);
}

TEST(Noise, TokensOfABlockAreUncorrelated) {
  constexpr uint32_t kPositions = 40000;
  double sum = 0;
  for (uint32_t position = 0; position < kPositions; ++position) {
    const NoiseKey key{.seed = 123, .sample_index = 0, .position = position};
    sum += (Time(key, 10) - 1) * (Time(key, 11) - 1);
  }
  // The mean of a product of independent unit-variance values: standard error 1 / sqrt(count).
  EXPECT_LT(std::abs(sum / kPositions), 3.3 / std::sqrt(double{kPositions}));
}

}  // namespace
}  // namespace plumb::engine
