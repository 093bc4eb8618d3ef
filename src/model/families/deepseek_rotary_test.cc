// model/families/deepseek_rotary_test.cc: frequencies of the released model, angles, and the way
// back.
#include "model/families/deepseek_rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/families/tiny_runner.h"

namespace plumb::model {
namespace {

constexpr DeepseekYarn kReleased = {16, 32, 1, 65536};

TEST(DeepseekRotary, YarnLeavesTheFirstPairsAndDividesTheLast) {
  const auto plain = RotaryFrequencies(64, 160000, std::nullopt);
  const auto yarn = RotaryFrequencies(64, 160000, kReleased);
  ASSERT_EQ(yarn.size(), 32u);
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_FLOAT_EQ(plain[i], static_cast<float>(std::pow(160000.0, -2.0 * i / 64)));
    if (i <= 15) {
      EXPECT_EQ(yarn[i], plain[i]);
    } else if (i >= 25) {
      EXPECT_FLOAT_EQ(yarn[i], plain[i] / 16);
    } else {
      EXPECT_LT(yarn[i], plain[i]);
      EXPECT_GT(yarn[i], plain[i] / 16);
    }
  }
}

TEST(DeepseekRotary, RotatesTheLastPairsByTheAngleAndBack) {
  DeepseekConfig config;
  config.rope_dims = 4;
  config.rope_base = 100;
  config.rope_base_compress = 400;
  auto rotary = DeepseekRotary::Create(config, 3);
  ASSERT_TRUE(rotary.ok());
  tensor::ThreadPool pool({.threads = 1});
  const uint32_t positions[] = {0, 7, 900'001};
  rotary->Begin({pool, Fastest()}, positions);
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6};  // two heads of 6
  std::vector<float> rotated = x;
  const RotaryRow row = rotary->Row(RotaryKind::kWindow, 2);
  rotary->RotateLast(Fastest(), row, 2, 6, rotated.data());
  for (uint32_t head = 0; head < 2; ++head) {
    for (uint32_t pair = 0; pair < 2; ++pair) {
      const double angle = 900'001.0f * static_cast<float>(pair == 0 ? 1.0 : 0.1);
      const float* before = x.data() + 6 * head + 2 + 2 * pair;
      const float* after = rotated.data() + 6 * head + 2 + 2 * pair;
      EXPECT_NEAR(after[0], before[0] * std::cos(angle) - before[1] * std::sin(angle), 1e-5);
      EXPECT_NEAR(after[1], before[1] * std::cos(angle) + before[0] * std::sin(angle), 1e-5);
    }
    EXPECT_EQ(rotated[6 * head], x[6 * head]);
    EXPECT_EQ(rotated[6 * head + 1], x[6 * head + 1]);
  }
  rotary->RotateLastBack(Fastest(), row, 2, 6, rotated.data());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(rotated[i], x[i], 1e-5);
}

TEST(DeepseekRotary, OnePositionIsTheSameAsARowOfTheStep) {
  DeepseekConfig config;
  config.rope_dims = 8;
  config.rope_base = 10000;
  config.rope_base_compress = 160000;
  config.yarn = kReleased;
  auto rotary = DeepseekRotary::Create(config, 1);
  ASSERT_TRUE(rotary.ok());
  tensor::ThreadPool pool({.threads = 1});
  const uint32_t positions[] = {123'456};
  rotary->Begin({pool, Fastest()}, positions);
  std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, b = a;
  rotary->RotateLast(Fastest(), rotary->Row(RotaryKind::kCompress, 0), 1, 10, a.data());
  rotary->RotateCompressed(Fastest(), 123'456, 10, b.data());
  EXPECT_TRUE(SameBits(a, b));
}

}  // namespace
}  // namespace plumb::model
