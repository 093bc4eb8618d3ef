// tensor/quant_group.h
// One group of 32 consecutive weights out of a GGUF row, whatever the format: w = s (q - z) + o
// with unsigned q. The only place that knows the file's bit layouts; dequantising and packing both
// use it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace plumb::tensor {

struct QuantGroup {
  uint8_t quants[32];  // Q8_0: the file's signed value + 128
  float scales[2];     // of inputs 0-15 and 16-31; equal but for Q6_K
  float offset;        // o; 0 without offsets. z: LayoutOf(dtype).zero_point
  // K formats only, the same in factors: scales = d * factor, offset = -(d_min * factor), exact.
  float d = 0;
  float d_min = 0;
  int8_t scale_factors[2] = {};
  uint8_t offset_factor = 0;
};

// Group `index` of a row that starts at `row` and holds it; the dtype is quantised.
QuantGroup ReadGroup(DType dtype, const std::byte* row, uint32_t index);

}  // namespace plumb::tensor
