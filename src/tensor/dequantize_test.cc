// tensor/dequantize_test.cc: block layouts against values made by the Python package `gguf`.
// How those were made: tests/golden/quants.
#include "tensor/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensor/test_data.h"
#include "tensor/testdata/quant_golden.h"

namespace plumb::tensor {
namespace {

TEST(Dequantize, AgreesWithTheGgufPackage) {
  constexpr size_t kBlocks = 3;
  for (const golden::Case& golden : golden::kCases) {
    std::vector<std::byte> row;
    for (size_t i = 0; i < kBlocks; ++i) {
      const auto block = std::as_bytes(golden.block);
      row.insert(row.end(), block.begin(), block.end());
    }
    std::vector<float> out(kBlocks * golden.values.size());
    ASSERT_TRUE(DequantizeRow(golden.dtype, row, out).ok());
    float largest = 0;
    for (const uint32_t bits : golden.values) {
      largest = std::fmax(largest, std::fabs(std::bit_cast<float>(bits)));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const auto expected = std::bit_cast<float>(golden.values[i % golden.values.size()]);
      // They round product and sum, we round once; both terms are at most twice the largest value.
      ASSERT_NEAR(out[i], expected, largest * 0x1.0p-22f) << Name(golden.dtype) << " " << i;
    }
  }
}

TEST(Dequantize, FloatsAreExact) {
  base::Rng rng(1);
  std::vector<float> out(5);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const auto bytes = test::RandomMatrix(dtype, 1, 5, rng);
    ASSERT_TRUE(DequantizeRow(dtype, bytes, out).ok());
    for (size_t i = 0; i < 5; ++i) {
      const float expected = dtype == DType::kF32   ? LoadFloat(&bytes[4 * i])
                             : dtype == DType::kF16 ? LoadHalf(&bytes[2 * i])
                                                    : BFloat16ToFloat(LoadU16(&bytes[2 * i]));
      EXPECT_EQ(out[i], expected);
    }
  }
}

TEST(Dequantize, WrongSizesAreRefused) {
  std::vector<std::byte> bytes(34);
  std::vector<float> out(32);
  EXPECT_TRUE(DequantizeRow(DType::kQ8_0, bytes, out).ok());
  EXPECT_EQ(DequantizeRow(DType::kQ4_0, bytes, out).code(), base::Code::kCorrupt);
  out.resize(31);
  EXPECT_EQ(DequantizeRow(DType::kQ8_0, bytes, out).code(), base::Code::kInvalidArgument);
  out.clear();
  EXPECT_EQ(DequantizeRow(DType::kF32, {}, out).code(), base::Code::kInvalidArgument);
}

TEST(Dequantize, AnyBytesAreAccepted) {
  base::Rng rng(2);
  for (const DType dtype : test::kAllTypes) {
    std::vector<std::byte> bytes(RowBytes(dtype, 256).value());
    std::vector<float> out(256);
    for (int round = 0; round < 50; ++round) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Next());
      EXPECT_TRUE(DequantizeRow(dtype, bytes, out).ok());
    }
    std::fill(bytes.begin(), bytes.end(), std::byte{0xff});  // scales are NaN
    EXPECT_TRUE(DequantizeRow(dtype, bytes, out).ok());
  }
}

}  // namespace
}  // namespace plumb::tensor
