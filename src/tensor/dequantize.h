// tensor/dequantize.h
// Stored weights to f32, one row at a time: embedding rows, small vectors (norms, biases), and the
// reference for everything that is packed. Rounds once: fma(s, q - z, o) (docs/numerics.md).
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/thread_pool.h"

namespace plumb::tensor {

// Fills `out` from the bytes of one row of out.size() elements. No allocation. Any bit pattern is
// accepted (a non-finite scale gives non-finite values). Thread: any.
// kInvalidArgument: out.size() is no multiple of the block; kCorrupt: `row` has another size.
base::Status DequantizeRow(DType dtype, std::span<const std::byte> row, std::span<float> out);

// Whether no float in the bytes of whole rows (elements, or the scales and offsets of blocks) is
// infinite or NaN: one such scale would make every answer of a model worthless. Split over the
// pool.
bool AllFinite(DType dtype, std::span<const std::byte> rows, ThreadPool& pool);

}  // namespace plumb::tensor
