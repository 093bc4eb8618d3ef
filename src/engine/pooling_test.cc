// engine/pooling_test.cc
// Means, last rows and lengths by hand; cuts do not matter; what is no number is no embedding.
#include "engine/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace plumb::engine {
namespace {

std::vector<float> Pool(Pooling pooling, uint32_t width, std::span<const float> rows) {
  Pooler pooler(pooling, width);
  EXPECT_TRUE(pooler.Add(rows).ok());
  EXPECT_TRUE(pooler.Finish().ok());
  return pooler.Take();
}

TEST(Pooling, MeanAndLastHaveLengthOne) {
  const std::vector<float> rows = {1, 7, 5, 1};  // mean (3, 4)
  EXPECT_EQ(Pool(Pooling::kMean, 2, rows), (std::vector<float>{0.6f, 0.8f}));
  const std::vector<float> last = {9, 9, -4, 3};
  EXPECT_EQ(Pool(Pooling::kLast, 2, last), (std::vector<float>{-0.8f, 0.6f}));
}

TEST(Pooling, CutsDoNotChangeABit) {
  constexpr uint32_t kWidth = 33, kRows = 200;
  base::Rng rng(5);
  std::vector<float> hidden(kWidth * kRows);
  for (float& value : hidden) {
    value = std::ldexp(static_cast<float>(rng.Below(2001)) - 1000.0f, -int(rng.Below(30)));
  }
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    const std::vector<float> whole = Pool(pooling, kWidth, hidden);
    for (const uint64_t bound : {1, 2, 60}) {
      Pooler pooler(pooling, kWidth);
      for (std::span<const float> left(hidden); !left.empty();) {
        const size_t rows = std::min<size_t>(1 + rng.Below(bound), left.size() / kWidth);
        ASSERT_TRUE(pooler.Add(left.first(rows * kWidth)).ok());
        left = left.subspan(rows * kWidth);
      }
      ASSERT_TRUE(pooler.Finish().ok());
      EXPECT_EQ(pooler.Take(), whole) << bound;
    }
  }
}

TEST(Pooling, LargestAndSmallestFloatsKeepTheirDirection) {
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_EQ(Pool(Pooling::kMean, 1, std::vector<float>{kMax, kMax, kMax}), std::vector<float>{1});
  constexpr float kMin = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Pool(Pooling::kMean, 2, std::vector<float>{0, -kMin}), (std::vector<float>{0, -1}));
}

TEST(Pooling, WhatIsNotFiniteOrHasNoDirectionIsAnError) {
  for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    Pooler pooler(Pooling::kMean, 2);
    EXPECT_EQ(pooler.Add(std::vector<float>{1, bad, 1, 1}).code(), base::Code::kInternal);
  }
  Pooler zero(Pooling::kMean, 2);
  ASSERT_TRUE(zero.Add(std::vector<float>{1, -2, -1, 2}).ok());
  EXPECT_EQ(zero.Finish().code(), base::Code::kInternal);
}

}  // namespace
}  // namespace plumb::engine
