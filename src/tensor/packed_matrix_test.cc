// tensor/packed_matrix_test.cc: what Pack refuses, and that its result does not depend on the pool.
// That packed weights are the file's weights: kernels_test.cc, OfUnitVectorsAreTheWeights.
#include "tensor/packed_matrix.h"

#include <gtest/gtest.h>

#include "tensor/dequantize.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

TEST(PackedMatrix, BadShapesAndSizesAreRefused) {
  ThreadPool pool({.threads = 1});
  const std::vector<std::byte> bytes(34 * 4);
  auto code = [&](DType dtype, uint64_t outputs, uint64_t inputs) {
    return PackedMatrix::Pack(dtype, outputs, inputs, bytes, pool).status().code();
  };
  EXPECT_EQ(code(DType::kQ8_0, 4, 32), base::Code::kOk);
  EXPECT_EQ(code(DType::kQ8_0, 0, 32), base::Code::kInvalidArgument);
  EXPECT_EQ(code(DType::kQ8_0, 4, 0), base::Code::kInvalidArgument);
  EXPECT_EQ(code(DType::kQ8_0, 4, 33), base::Code::kInvalidArgument);
  EXPECT_EQ(code(DType::kQ4_K, 4, 32), base::Code::kInvalidArgument);
  EXPECT_EQ(code(DType::kQ8_0, kMatrixSideMax + 1, 32), base::Code::kInvalidArgument);
  EXPECT_EQ(code(DType::kF32, 4, UINT64_MAX), base::Code::kInvalidArgument);
  EXPECT_EQ(code(DType::kQ8_0, 3, 32), base::Code::kCorrupt);
  EXPECT_EQ(code(DType::kQ8_0, 4, 64), base::Code::kCorrupt);
  EXPECT_EQ(code(DType::kQ8_0, kMatrixSideMax, kMatrixSideMax), base::Code::kCorrupt);
}

TEST(PackedMatrix, SizesFollowTheLayout) {
  ThreadPool pool({.threads = 1});
  base::Rng rng(1);
  const auto q4 =
      PackedMatrix::Pack(DType::kQ4_1, 17, 64, test::RandomMatrix(DType::kQ4_1, 17, 64, rng), pool);
  EXPECT_EQ(q4->panels(), 2u);
  EXPECT_EQ(q4->size_bytes(), 2u * 2 * (256 + 64));
  const auto q6 = PackedMatrix::Pack(DType::kQ6_K, 16, 256,
                                     test::RandomMatrix(DType::kQ6_K, 16, 256, rng), pool);
  EXPECT_EQ(q6->size_bytes(), 32u + 8 * (256 + 128 + 32));  // 6.5625 bits a weight, as the file
  const auto f16 =
      PackedMatrix::Pack(DType::kF16, 1, 3, test::RandomMatrix(DType::kF16, 1, 3, rng), pool);
  EXPECT_EQ(f16->size_bytes(), 3u * 32);
}

TEST(PackedMatrix, IsTheSameForAnyPoolAndMemory) {
  base::Rng rng(2);
  WeightArena arena;
  ThreadPool one({.threads = 1});
  ThreadPool four({.threads = 4});
  for (const DType dtype : test::kAllTypes) {
    const auto bytes = test::RandomMatrix(dtype, 100, 256, rng);
    const auto a = PackedMatrix::Pack(dtype, 100, 256, bytes, one);
    const auto b = PackedMatrix::Pack(dtype, 100, 256, bytes, four, &arena);
    ASSERT_EQ(a->size_bytes(), b->size_bytes());
    EXPECT_EQ(std::memcmp(a->panel(0), b->panel(0), a->size_bytes()), 0) << Name(dtype);
  }
}

TEST(PackedMatrix, RowsComeBackAsTheFileHasThem) {
  base::Rng rng(3);
  ThreadPool pool({.threads = 1});
  for (const DType dtype : test::kAllTypes) {
    if (dtype == DType::kBF16) continue;  // rounded; kernels_test.cc says by how much
    const auto bytes = test::RandomMatrix(dtype, 37, 512, rng);
    const auto matrix = PackedMatrix::Pack(dtype, 37, 512, bytes, pool);
    const size_t row_bytes = bytes.size() / 37;
    for (const uint32_t output : {0u, 15u, 16u, 36u}) {
      std::vector<float> expected(512);
      std::vector<float> got(512);
      const auto row = std::span(bytes).subspan(output * row_bytes, row_bytes);
      ASSERT_TRUE(DequantizeRow(dtype, row, expected).ok());
      matrix->UnpackRow(output, got);
      EXPECT_EQ(test::FirstDifference(expected, got), "") << Name(dtype) << " " << output;
    }
  }
}

TEST(PackedMatrix, AnyBytesAreAccepted) {
  ThreadPool pool({.threads = 1});
  for (const DType dtype : test::kAllTypes) {
    const std::vector<std::byte> bytes(MatrixBytes(dtype, 3, 256).value(), std::byte{0xff});
    EXPECT_TRUE(PackedMatrix::Pack(dtype, 3, 256, bytes, pool).ok()) << Name(dtype);
  }
}

}  // namespace
}  // namespace plumb::tensor
