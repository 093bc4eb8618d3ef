// base/unit_vector_test.cc
// Lengths and directions, and what has none.
#include "base/unit_vector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plumb::base {
namespace {

TEST(UnitVector, KeepsTheDirectionAtLengthOne) {
  std::vector<float> out = {7};
  ASSERT_TRUE(AppendUnitVector(std::vector<double>{3, 0, -4}, out));
  EXPECT_EQ(out, (std::vector<float>{7, 0.6f, 0, -0.8f}));
  for (const double scale : {1e-150, 1e-3, 1.0, 1e150}) {
    std::vector<float> scaled;
    ASSERT_TRUE(AppendUnitVector(std::vector<double>{3 * scale, -4 * scale}, scaled));
    EXPECT_EQ(scaled, (std::vector<float>{0.6f, -0.8f})) << scale;
  }
}

TEST(UnitVector, RefusesWhatHasNoDirection) {
  using Limits = std::numeric_limits<double>;
  const std::vector<std::vector<double>> bad = {
      {}, {0, -0.0}, {1, Limits::infinity()}, {Limits::quiet_NaN(), 1}};
  for (const std::vector<double>& values : bad) {
    std::vector<float> out = {7};
    EXPECT_FALSE(AppendUnitVector(values, out));
    EXPECT_EQ(out, std::vector<float>{7});
  }
}

}  // namespace
}  // namespace plumb::base
