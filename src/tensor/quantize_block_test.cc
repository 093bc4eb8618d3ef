// tensor/quantize_block_test.cc: what comes back after a round trip is as near as the format's
// bound says and, on random matrices, nearer than what llama.cpp's quantisers leave.
#include "tensor/quantize_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tensor/dequantize.h"
#include "tensor/test_data.h"
#include "tensor/testdata/quant_golden.h"

namespace plumb::tensor {
namespace {

std::vector<std::byte> Quantize(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> row(RowBytes(dtype, values.size()).value());
  const base::Status status = QuantizeRow(dtype, values, row);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return row;
}
std::vector<float> Dequantize(DType dtype, const std::vector<std::byte>& row, size_t size) {
  std::vector<float> values(size);
  EXPECT_TRUE(DequantizeRow(dtype, row, values).ok());
  return values;
}
std::vector<float> RoundTrip(DType dtype, const std::vector<float>& values) {
  return Dequantize(dtype, Quantize(dtype, values), values.size());
}

// Root of the sum of squares; of differences when there are two.
double Norm(const std::vector<float>& a, const std::vector<float>& b = {}) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - (b.empty() ? 0.0 : double{b[i]});
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

// About normal (the sum of twelve uniforms), or with heavier tails: n |n|.
std::vector<float> RandomWeights(size_t count, bool heavy) {
  base::Rng rng(7);
  std::vector<float> weights(count);
  for (float& weight : weights) {
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += rng.Uniform();
    const auto n = static_cast<float>(normal);
    weight = 0.02f * (heavy ? n * std::fabs(n) : n);
  }
  return weights;
}

constexpr DType kQuantized[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

// Relative root mean square error of llama.cpp's quantisers (ggml 0.25.3, no importance matrix) on
// the same 64 x 1024 weights; made by eval/quality/lib/ggml_quantizer_error.cc.
struct ReferenceError {
  DType dtype;
  double normal, heavy;
};
constexpr ReferenceError kReference[] = {
    {DType::kQ4_0, 0.084891, 0.110664}, {DType::kQ4_1, 0.077423, 0.102298},
    {DType::kQ5_0, 0.042107, 0.057048}, {DType::kQ5_1, 0.037592, 0.049613},
    {DType::kQ8_0, 0.005270, 0.007560}, {DType::kQ4_K, 0.070679, 0.091479},
    {DType::kQ5_K, 0.035795, 0.047346}, {DType::kQ6_K, 0.017510, 0.023409},
};

TEST(QuantizeRow, LeavesNoLargerErrorThanTheReference) {
  for (const bool heavy : {false, true}) {
    const std::vector<float> weights = RandomWeights(64 * 1024, heavy);
    for (const ReferenceError& reference : kReference) {
      const double error = Norm(RoundTrip(reference.dtype, weights), weights) / Norm(weights);
      EXPECT_LT(error, heavy ? reference.heavy : reference.normal) << Name(reference.dtype);
      EXPECT_GT(error, 0.8 * (heavy ? reference.heavy : reference.normal))
          << Name(reference.dtype) << ": too good to be true";
    }
  }
}

// The plain scale of a block (its range over the levels) errs by at most half a step a weight, plus
// the rounding of f16 numbers; the search keeps nothing worse.
TEST(QuantizeRow, ErrorIsWithinHalfAStepOfThePlainScale) {
  struct Case {
    DType dtype;
    size_t group;
    float steps;     // between the group's ends
    bool symmetric;  // the range is twice the largest magnitude
  };
  // Q4_K and Q5_K also round group scales to 6 bits of the block's largest, Q6_K to 7.
  for (const Case& c : {Case{DType::kQ4_0, 32, 15, true}, Case{DType::kQ4_1, 32, 15, false},
                        Case{DType::kQ5_0, 32, 31, true}, Case{DType::kQ5_1, 32, 31, false},
                        Case{DType::kQ8_0, 32, 254, true}, Case{DType::kQ4_K, 256, 15, false},
                        Case{DType::kQ5_K, 256, 31, false}, Case{DType::kQ6_K, 256, 62, true}}) {
    base::Rng rng(11);
    for (int trial = 0; trial < 50; ++trial) {
      std::vector<float> block(c.group);
      const float center = test::RandomFloat(rng, 0.1f);
      for (float& value : block) value = center + test::RandomFloat(rng, 0.3f);
      float least = 0, most = 0, magnitude = 0;
      for (const float value : block) {
        least = std::min(least, value);
        most = std::max(most, value);
        magnitude = std::max(magnitude, std::fabs(value));
      }
      const float range = c.symmetric ? 2 * magnitude : most - least;
      const double bound = std::sqrt(static_cast<double>(c.group)) *
                           (range / c.steps / 2 + magnitude * 0x1.0p-10f) *
                           (c.group == 256 ? 1.1 : 1.0);
      EXPECT_LT(Norm(RoundTrip(c.dtype, block), block), bound) << Name(c.dtype);
    }
  }
}

TEST(QuantizeRow, ValuesThatAFormatHoldsComeBackAlmost) {
  for (const golden::Case& golden : golden::kCases) {
    std::vector<float> values;
    for (const uint32_t bits : golden.values) values.push_back(std::bit_cast<float>(bits));
    // Random bits use all levels of every group but no group's whole scale range: near, not equal.
    const double error = Norm(RoundTrip(golden.dtype, values), values) / Norm(values);
    EXPECT_LT(error, golden.dtype == DType::kQ8_0 ? 0.006 : 0.035) << Name(golden.dtype);
  }
}

TEST(QuantizeRow, ZerosStayZeros) {
  for (const DType dtype : test::kAllTypes) {
    for (const float zero : {0.0f, -0.0f, std::numeric_limits<float>::denorm_min(), -1e-30f}) {
      if (!IsQuantized(dtype) && zero != 0) continue;
      const std::vector<float> values(512, zero);
      for (const float value : RoundTrip(dtype, values)) EXPECT_EQ(value, 0.0f) << Name(dtype);
    }
  }
}

TEST(QuantizeRow, OneWeightAloneIsKept) {
  for (const DType dtype : kQuantized) {
    for (const float weight : {3.0f, -3.0f, 1e-3f}) {
      std::vector<float> values(256);
      values[77] = weight;
      const std::vector<float> back = RoundTrip(dtype, values);
      EXPECT_NEAR(back[77], weight, std::fabs(weight) * 0x1.0p-6f) << Name(dtype);
      for (size_t i = 0; i < values.size(); ++i) {
        if (i == 77) continue;
        EXPECT_NEAR(back[i], 0, std::fabs(weight) * 0x1.0p-9f) << Name(dtype) << " " << i;
      }
    }
  }
}

TEST(QuantizeRow, ConstantBlocksAreKept) {
  for (const DType dtype : kQuantized) {
    for (const float weight : {0.5f, -0.5f, 123.0f}) {
      const std::vector<float> values(256, weight);
      for (const float value : RoundTrip(dtype, values)) {
        ASSERT_NEAR(value, weight, std::fabs(weight) * 0x1.0p-6f) << Name(dtype);
      }
    }
  }
}

TEST(QuantizeRow, HoldsTheLargestMagnitudeAndRefusesMore) {
  for (const DType dtype : test::kAllTypes) {
    const float most = MagnitudeMax(dtype);
    for (const float sign : {1.0f, -1.0f}) {
      std::vector<float> values(256);
      values[3] = sign * most;
      if (dtype != DType::kF32 && dtype != DType::kBF16) {
        EXPECT_NEAR(RoundTrip(dtype, values)[3] / most, sign, 0.02f) << Name(dtype);
        values[3] = sign * most * 1.001f;
        std::vector<std::byte> row(RowBytes(dtype, 256).value());
        const base::Status status = QuantizeRow(dtype, values, row);
        EXPECT_EQ(status.code(), base::Code::kCorrupt) << Name(dtype);
        EXPECT_NE(status.message().find("element 3 of a row"), std::string::npos);
      } else {
        EXPECT_EQ(RoundTrip(dtype, values)[3], sign * most) << Name(dtype);
      }
    }
  }
}

TEST(QuantizeRow, RefusesWhatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : test::kAllTypes) {
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values(256, 1.0f);
      values[200] = bad;
      std::vector<std::byte> row(RowBytes(dtype, 256).value());
      const base::Status status = QuantizeRow(dtype, values, row);
      EXPECT_EQ(status.code(), base::Code::kCorrupt) << Name(dtype);
      EXPECT_NE(status.message().find("element 200"), std::string::npos) << status.ToString();
    }
  }
}

TEST(QuantizeRow, SmallWeightsLoseOnlyWhatF16ScalesLose) {
  for (const DType dtype : kQuantized) {
    for (float size = 1.0f; size > 1e-12f; size /= 7) {
      std::vector<float> values = RandomWeights(256, false);
      for (float& value : values) value *= size;
      const std::vector<float> back = RoundTrip(dtype, values);
      EXPECT_LE(Norm(back, values), Norm(values)) << Name(dtype) << " " << size;
    }
  }
}

TEST(QuantizeRow, FloatsRoundToNearestEven) {
  EXPECT_EQ(RoundTrip(DType::kF16, {1.0f + 0x1.0p-11f, 1.0f + 0x1.8p-10f}),
            (std::vector<float>{1.0f, 1.0f + 0x1.0p-9f}));
  EXPECT_EQ(RoundTrip(DType::kBF16, {1.0f + 0x1.0p-8f, 1.0f + 0x1.8p-7f, -0.0f}),
            (std::vector<float>{1.0f, 1.0f + 0x1.0p-6f, -0.0f}));
  const std::vector<float> exact = {1e-40f, 3.4e38f, -7.25f};
  EXPECT_EQ(RoundTrip(DType::kF32, exact), exact);
}

TEST(QuantizeRow, RefusesWrongSizes) {
  std::vector<std::byte> row(34);
  const std::vector<float> values(33);
  EXPECT_EQ(QuantizeRow(DType::kQ8_0, values, row).code(), base::Code::kInvalidArgument);
  EXPECT_EQ(QuantizeRow(DType::kQ4_0, std::span(values).first(32), row).code(),
            base::Code::kCorrupt);
}

}  // namespace
}  // namespace plumb::tensor
