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

// Every scale, offset or element, turned into NaN or infinity one at a time, is found: a byte of
// the file whose value makes some dequantised weight not finite is one that AllFinite reports.
TEST(AllFinite, FindsEveryBadFloat) {
  base::Rng rng(5);
  ThreadPool pool({.threads = 2});
  for (const DType dtype : test::kAllTypes) {
    const auto good = test::RandomMatrix(dtype, 3, 512, rng);
    EXPECT_TRUE(AllFinite(dtype, good, pool)) << Name(dtype);
    const size_t row_bytes = good.size() / 3;
    uint32_t found = 0;
    for (size_t place = 0; place + 1 < good.size(); place += 2) {
      auto bad = good;
      bad[place] = std::byte{0xff};
      bad[place + 1] = std::byte{0xff};
      std::vector<float> out(512);
      bool finite = true;
      for (size_t row = 0; row < 3; ++row) {
        ASSERT_TRUE(
            DequantizeRow(dtype, std::span(bad).subspan(row * row_bytes, row_bytes), out).ok());
        for (const float value : out) finite = finite && std::isfinite(value);
      }
      EXPECT_EQ(AllFinite(dtype, bad, pool), finite) << Name(dtype) << " byte " << place;
      found += finite ? 0 : 1;
    }
    EXPECT_GE(found, 3u) << Name(dtype);
  }
}

}  // namespace
}  // namespace plumb::tensor
