// tensor/quantize_block.h
// f32 weights to the stored formats of a model file, one row at a time: the way back from
// tensor/dequantize.h. Block formats keep the scale (and offset) with the least squared error that
// a search finds, never a worse one than the plain range of the block gives. The search is plain
// f32 in a fixed order, so the bytes are the same on every machine and for any number of threads.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "tensor/dtype.h"

namespace plumb::tensor {

// Largest magnitude that a format holds for certain: beyond, an f16 scale or offset overflows.
float MagnitudeMax(DType dtype);

// Fills `row` with the stored form of `values`. Floats round to nearest even; a block whose weights
// are too small for an f16 scale becomes zeros. No allocation. Thread: any.
// kInvalidArgument: values.size() is no multiple of the block; kCorrupt: `row` has another size
// than the values need, or a value is not finite or above MagnitudeMax (the message gives its
// index).
base::Status QuantizeRow(DType dtype, std::span<const float> values, std::span<std::byte> row);

}  // namespace plumb::tensor
