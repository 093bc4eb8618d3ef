// tensor/activations.h
// Rows of activations as integer products read them: 16-bit quants with one scale for the row, and
// sums by group of 32 inputs that meet the weights' zero points and offsets. Rows lie in tiles of
// up to 8 so that a kernel walks one pointer. The exact roundings: docs/numerics.md; why 16 bits:
// docs/decisions/0001-activation-bits.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "tensor/aligned_buffer.h"

namespace plumb::tensor {

constexpr uint32_t kTileRows = 8;
constexpr float kQuantMax = 32767.0f;  // the largest quant

// Of one row and group.
struct ActivationGroup {
  float sum;               // of the group's quants, exact; meets the weights' offsets
  int32_t minus8_sum;      // -8 * sum: the start for zero points 8, 16, 32, 128 by a shift
  int32_t minus8_half[2];  // the same over inputs 0-15 and 16-31
};

// Scratch of the caller's, sized once; a resource type. Thread: one user at a time (Linear).
// Tile t holds rows [8t, 8t + n), n = min(8, rows - 8t):
//   quants [groups][n][32] at entry 8t * inputs; groups [groups][n] at entry 8t * inputs / 32.
// The inputs of a quad are stored in the order 0, 2, 1, 3, in which kernels split a quad of weight
// bytes into two pairs of 16-bit values. scales [rows]: x is about scale * quant.
class Activations {
 public:
  // For up to rows_max rows of up to inputs_max inputs. kOverloaded: out of memory.
  static base::Result<Activations> Allocate(uint32_t rows_max, uint32_t inputs_max);

  Activations() = default;
  uint32_t rows_max() const { return rows_max_; }
  uint32_t inputs_max() const { return inputs_max_; }
  int16_t* quants() { return reinterpret_cast<int16_t*>(quants_.data()); }
  ActivationGroup* groups() { return reinterpret_cast<ActivationGroup*>(groups_.data()); }
  float* scales() { return reinterpret_cast<float*>(scales_.data()); }

 private:
  uint32_t rows_max_ = 0;
  uint32_t inputs_max_ = 0;
  AlignedBuffer quants_;
  AlignedBuffer groups_;
  AlignedBuffer scales_;
};

}  // namespace plumb::tensor
