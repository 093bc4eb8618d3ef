// tensor/block_matrix.h
// A matrix in the form in which a checkpoint stores it, and products with it straight from the
// mapped file: no repacked and no widened copy. Weights become f32 in registers (or in a tile of a
// few kilobytes), exactly; activations stay f32. An output sums by 16 virtual lanes over its inputs
// (docs/numerics_deepseek_v41.md, "Products"), so its bits depend on nothing but weights and row.
// Twin for weights that are packed at load: packed_matrix.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/ops.h"

namespace plumb::tensor {

// Of one call of BlockLinear.
constexpr uint32_t kBlockProductsMax = 4096;

// Row-major, little-endian, of any alignment.
enum class BlockFormat : uint8_t {
  kF32,
  kBf16,
  // A byte E4M3 each; a scale for each 32 x 32 block, blocks at the edges cut: [ceil(outputs / 32),
  // ceil(inputs / 32)].
  kF8Block32,
  // Two E2M1 codes in a byte, the even input in the low half; a scale for each 32 inputs of an
  // output: [outputs, inputs / 32]. inputs is a multiple of 32.
  kF4Group32,
};

// Scales are E8M0 bytes, 2^(byte - 127); 255, NaN, must have been refused by whoever made this. An
// E4M3 code of NaN counts as 480 with its sign. A value type; borrows the bytes, of which no more
// are read than the shape has.
struct BlockMatrix {
  BlockFormat format = BlockFormat::kF32;
  uint32_t outputs = 0;
  uint32_t inputs = 0;  // >= 1
  const std::byte* weights = nullptr;
  const std::byte* scales = nullptr;  // null for kF32 and kBf16

  // Outputs [begin, begin + count) as a matrix; for kF8Block32 begin is a multiple of 32.
  BlockMatrix Rows(uint32_t begin, uint32_t count) const;
  uint64_t weight_bytes() const;  // scales included
};

constexpr uint64_t BlockRowBytes(BlockFormat format, uint64_t inputs) {
  switch (format) {
    case BlockFormat::kF32:
      return 4 * inputs;
    case BlockFormat::kBf16:
      return 2 * inputs;
    case BlockFormat::kF8Block32:
      return inputs;
    case BlockFormat::kF4Group32:
      return inputs / 2;
  }
  return 0;
}

// out[row][output] = sum over inputs of matrix[output][input] * x[row][input].
struct BlockProduct {
  BlockMatrix matrix;
  const float* x = nullptr;  // [rows, inputs], row i at x + i * x_stride
  uint64_t x_stride = 0;
  uint32_t rows = 0;  // may be 0
  float* out = nullptr;
  uint64_t out_stride = 0;
};

// All products in one fork-join; no out overlaps another or an x. At most kBlockProductsMax. No
// allocation.
void BlockLinear(Compute compute, std::span<const BlockProduct> products);

// Row `row` of the matrix as f32: embedding rows, tables.
void BlockRow(const BlockMatrix& matrix, uint64_t row, float* out);

}  // namespace plumb::tensor
