// tensor/dtype_test.cc: sizes are checked, never wrapped.
// The numbers are those of the GGUF specification.
#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace plumb::tensor {
namespace {

TEST(DType, RowsHaveTheSizesOfTheFormat) {
  EXPECT_EQ(*RowBytes(DType::kF32, 3), 12u);
  EXPECT_EQ(*RowBytes(DType::kBF16, 3), 6u);
  EXPECT_EQ(*RowBytes(DType::kQ8_0, 64), 68u);
  EXPECT_EQ(*RowBytes(DType::kQ4_1, 576), 360u);
  EXPECT_EQ(*RowBytes(DType::kQ6_K, 512), 420u);
  EXPECT_EQ(*MatrixBytes(DType::kQ4_K, 10, 256), 1440u);
  EXPECT_EQ(*MatrixBytes(DType::kQ4_K, 0, 256), 0u);
}

TEST(DType, PartialBlocksAndOverflowAreRefused) {
  for (const auto& [dtype, inputs] : {std::pair{DType::kQ8_0, uint64_t{0}},
                                      {DType::kF32, 0},
                                      {DType::kQ8_0, 33},
                                      {DType::kQ4_K, 128},
                                      {DType::kF32, UINT64_MAX},
                                      {DType::kQ8_0, UINT64_MAX - 31}}) {
    const auto bytes = RowBytes(dtype, inputs);
    ASSERT_FALSE(bytes.ok()) << inputs;
    EXPECT_EQ(bytes.status().code(), base::Code::kInvalidArgument);
  }
  EXPECT_FALSE(MatrixBytes(DType::kF32, uint64_t{1} << 40, uint64_t{1} << 40).ok());
  EXPECT_FALSE(MatrixBytes(DType::kF32, uint64_t{1} << 31, uint64_t{1} << 30).ok());
}

TEST(DType, GgufNumbersMapToTypesOrNothing) {
  EXPECT_EQ(DTypeFromGguf(0), DType::kF32);
  EXPECT_EQ(DTypeFromGguf(14), DType::kQ6_K);
  EXPECT_EQ(DTypeFromGguf(30), DType::kBF16);
  for (const uint32_t unread : {4u, 9u, 10u, 15u, 29u, 31u, UINT32_MAX}) {
    EXPECT_FALSE(DTypeFromGguf(unread)) << unread;
  }
  EXPECT_EQ(Name(DType::kQ5_K), "Q5_K");
}

}  // namespace
}  // namespace plumb::tensor
