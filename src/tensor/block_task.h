// tensor/block_task.h
// What one call of a block product kernel does: part of KernelTable's contract (kernel_table.h),
// made by block_matrix.cc. Formulas: docs/numerics_deepseek_v41.md, "Products".
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_matrix.h"

namespace plumb::tensor {

// Outputs that share the scales of kF8Block32: items of few rows are cut at multiples of it where
// that leaves enough of them.
constexpr uint32_t kOutputsTogether = 32;
// Outputs of a task begin at a multiple of it.
constexpr uint32_t kOutputsUnit = 4;
constexpr uint32_t kScaleBlock = 32;  // outputs and inputs to a scale of kF8Block32

// Some outputs of one matrix times all rows of a task.
struct BlockTask {
  const BlockMatrix* matrix;
  uint32_t output_begin;  // a multiple of kOutputsUnit
  uint32_t output_end;
  uint32_t rows;   // at least 1
  const float* x;  // [rows, inputs], row i at x + i * x_stride
  uint64_t x_stride;
  float* out;  // of output 0 of the matrix
  uint64_t out_stride;
};

}  // namespace plumb::tensor
