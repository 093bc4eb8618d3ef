// tensor/activations.h
// Rows of activations as integer products read them: 8 or 16 bits by row and group of 32 inputs,
// with a scale and sums for each group. Rows lie in tiles of up to 8 so that a kernel walks one
// pointer. The exact roundings are in docs/numerics.md; what the widths cost and give:
// docs/decisions/0001-activation-bits.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "tensor/aligned_buffer.h"

namespace plumb::tensor {

constexpr uint32_t kTileRows = 8;

// How finely activations are rounded before a product with quantised weights. A width is part of
// the model's arithmetic: never chosen by load, batch or machine.
enum class ActivationBits : uint8_t { k8, k16 };
constexpr uint32_t BytesOf(ActivationBits bits) { return bits == ActivationBits::k8 ? 1 : 2; }
// The largest quant, as a float for scales.
constexpr float QuantMax(ActivationBits bits) {
  return bits == ActivationBits::k8 ? 127.0f : 32767.0f;
}

// Of one row and group.
struct ActivationGroup {
  float scale;           // x is about scale * quant
  float scaled_sum;      // scale * sum of quants, rounded once; meets the weights' offsets
  int32_t minus8_sum;    // -8 * sum of quants: the start for zero points 8, 16, 32, 128 by a shift
  int32_t minus8_first;  // the same over the group's first 16 inputs
};

// Scratch of the caller's, sized once; a resource type. Thread: one user at a time (Linear).
// Tile t holds rows [8t, 8t + n), n = min(8, rows - 8t):
//   quants [groups][n][32] at entry 8t * inputs; groups [groups][n] at entry 8t * inputs / 32.
// Quants are int8, or int16 with the inputs of a quad stored in the order 0, 2, 1, 3 (the order in
// which kernels split a quad of weight bytes into two pairs of 16-bit values).
class Activations {
 public:
  // For up to rows_max rows of up to inputs_max inputs. kOverloaded: out of memory.
  static base::Result<Activations> Allocate(uint32_t rows_max, uint32_t inputs_max);

  Activations() = default;
  uint32_t rows_max() const { return rows_max_; }
  uint32_t inputs_max() const { return inputs_max_; }
  std::byte* quants() { return quants_.data(); }
  ActivationGroup* groups() { return reinterpret_cast<ActivationGroup*>(groups_.data()); }

 private:
  uint32_t rows_max_ = 0;
  uint32_t inputs_max_ = 0;
  AlignedBuffer quants_;
  AlignedBuffer groups_;
};

}  // namespace plumb::tensor
