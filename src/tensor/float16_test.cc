// tensor/float16_test.cc: every half, and the roundings between halves.
// The hardware's conversions are compared in kernels_test.cc (Kernels.Storing...).
#include "tensor/float16.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumb::tensor {
namespace {

TEST(Float16, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << bits;
    } else {
      EXPECT_EQ(FloatToHalf(value), half);
    }
  }
}

TEST(Float16, ValuesBetweenHalvesGoToTheNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = HalfToFloat(static_cast<uint16_t>(bits));
    const float high = HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = (low + high) / 2;  // exact: one bit more than a half has
    EXPECT_EQ(FloatToHalf(middle), bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, low)), bits);
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, high)), bits + 1);
    EXPECT_EQ(FloatToHalf(-middle), 0x8000 | (bits % 2 == 0 ? bits : bits + 1));
  }
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(1e-30f), 0);
}

TEST(Float16, KnownValues) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0xc000), -2.0f);
  EXPECT_EQ(HalfToFloat(0x0001), 0x1.0p-24f);
  EXPECT_EQ(HalfToFloat(0x7c00), INFINITY);
  EXPECT_EQ(BFloat16ToFloat(0x3fc0), 1.5f);
}

}  // namespace
}  // namespace plumb::tensor
