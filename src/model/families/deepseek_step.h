// model/families/deepseek_step.h
// What every part of DeepSeek-V4.1's forward pass shares: the roundings of a mode, loops over rows,
// and scratch memory sized once. Formulas: docs/numerics_deepseek_v41.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "model/load.h"
#include "tensor/aligned_buffer.h"
#include "tensor/block_matrix.h"
#include "tensor/ops.h"
#include "tensor/row_format.h"

namespace plumb::model {

// What a mode rounds.
struct DeepseekRoundings {
  tensor::RowFormat window = tensor::RowFormat::kF32;  // rows of the sliding window
  tensor::RowFormat main = tensor::RowFormat::kF32;    // compressed rows
  tensor::RowFormat key = tensor::RowFormat::kF32;     // index keys and index queries
  // Activations: to BF16 between operations, and to F8 in front of F8 and F4 matrices.
  bool activations = false;
};
DeepseekRoundings RoundingsOf(Roundings mode);

// "d1-kvq-k140": the arithmetic's version, the mode, and the rows of bounded replay (0 = off).
std::string DeepseekNumericsId(Roundings mode, uint32_t replay_rows);

// `count` values of T, zeroed, aligned for vectors. A resource type.
template <typename T>
class Scratch {
 public:
  // kOverloaded: out of memory.
  static base::Result<Scratch> Allocate(uint64_t count) {
    Scratch scratch;
    ASSIGN_OR_RETURN(scratch.memory_,
                     tensor::AlignedBuffer::Allocate(std::max<uint64_t>(count, 1) * sizeof(T)));
    scratch.count_ = count;
    return scratch;
  }
  Scratch() = default;
  T* data() { return reinterpret_cast<T*>(memory_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }
  uint64_t size() const { return count_; }

 private:
  tensor::AlignedBuffer memory_;
  uint64_t count_ = 0;
};

// Calls fn(row) for each row, several rows of `floats` values to an item of the pool.
template <typename F>
void ForEachRow(tensor::Compute compute, uint32_t rows, uint64_t floats, const F& fn) {
  constexpr uint64_t kItemFloats = 4096;
  const auto rows_per_item =
      static_cast<uint32_t>(std::max<uint64_t>(kItemFloats / std::max<uint64_t>(floats, 1), 1));
  const uint32_t items = (rows + rows_per_item - 1) / rows_per_item;
  compute.pool.ParallelFor(items, [&](uint32_t item) {
    const uint32_t end = std::min(rows, (item + 1) * rows_per_item);
    for (uint32_t row = item * rows_per_item; row < end; ++row) fn(row);
  });
}

// Sum of 16 virtual lanes, as docs/numerics.md folds them.
float FoldLanes(float (&lanes)[16]);
// Sum of x[k]^2 by 16 virtual lanes, product and sum each rounded; n is a multiple of 16.
float SumOfSquares(const float* x, uint64_t n);
// 1 / (1 + exp(-x))
float Sigmoid(float x);

// x [rows, n] to BF16, in a mode that rounds activations.
void RoundActivations(tensor::Compute compute, const DeepseekRoundings& roundings, uint32_t rows,
                      uint64_t n, float* x);
// x [rows, n] as a product with `matrix` reads it: in a mode that rounds activations, and for F8
// and F4 matrices, to F8 with a scale for each 32; n is a multiple of 32.
void RoundInputs(tensor::Compute compute, const DeepseekRoundings& roundings,
                 const tensor::BlockMatrix& matrix, uint32_t rows, uint64_t n, float* x);
// The same without changing x: x itself, or a rounded copy in `copy` [rows, n].
const float* RoundedInputs(tensor::Compute compute, const DeepseekRoundings& roundings,
                           const tensor::BlockMatrix& matrix, uint32_t rows, uint64_t n,
                           const float* x, float* copy);

// out = matrix * x for dense rows.
void Multiply(tensor::Compute compute, const tensor::BlockMatrix& matrix, const float* x,
              uint32_t rows, float* out);

}  // namespace plumb::model
