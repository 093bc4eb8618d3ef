// tensor/packed_matrix.h
// A weight matrix, repacked once at load into the form in which kernels stream it: panels of 16
// outputs, lane = output, so that no kernel sums across lanes and each output is reduced in the
// order of its inputs. What a product computes: docs/numerics.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "tensor/aligned_buffer.h"
#include "tensor/dtype.h"
#include "tensor/thread_pool.h"
#include "tensor/weight_arena.h"

namespace plumb::tensor {

constexpr uint32_t kPanelOutputs = 16;
constexpr uint32_t kGroupInputs = 32;
constexpr uint64_t kMatrixSideMax = uint64_t{1} << 30;

// Where things lie in a panel of one type; all sizes in bytes. Outputs beyond the last are zero.
// F32 and F16: [inputs][16 lanes] of the stored type; BF16 too when inputs is no multiple of 32,
// widened to F32. Else BF16 becomes fixed point in groups that share a power of two, nearly without
// loss (docs/decisions/0002-bf16-fixed-point.md), and is read like the quantised types.
// Quantised types are as dense as the file. A panel is a row of blocks, each a header and 1 or 8
// groups of 32 inputs:
// - header (K formats, 8 groups): d as f16 [16 lanes], then -dmin as f16 [16 lanes] with offsets;
// - low plane: eight quads of 4 consecutive inputs. A quad is 64 bytes: byte 4 * lane + i is input
//   i of the quad, an unsigned value q (Q8_0: the file's + 128). With 4 low bits two quads share
//   64 bytes, the first in the low nibbles;
// - high plane: the bits above the low ones, byte 4 * lane + i again. With h high bits 8 / h quads
//   share 64 bytes: bits h * k and up of the n-th 64 for quad n * 8 / h + k;
// - scales: [16 lanes] (Q6_K: [2 halves][16 lanes]), f16; one byte in K formats (a factor of d) and
//   in BF16 (the biased exponent of a power of two);
// - offsets: [16 lanes] likewise, for Q4_1, Q5_1, Q4_K, Q5_K; in K formats a factor of -dmin.
struct PanelLayout {
  uint32_t low_bits = 0;   // 4 or 8; 0 for float types
  uint32_t high_bits = 0;  // 0, 1, 2 or 4
  uint32_t scales = 0;     // vectors of 16 scales in a group: 1, or 2 for Q6_K
  bool offsets = false;
  uint32_t zero_point = 0;  // z; a multiple of 8, 0 if there are offsets
  bool factors = false;     // K formats: scales and offsets are factors of the header's
  bool exponents = false;   // BF16: scales are powers of two

  // Read as integers by kernels, with quantised activations.
  constexpr bool quantized() const { return low_bits != 0; }
  constexpr uint32_t groups() const { return factors ? 8 : 1; }  // of a block
  constexpr uint32_t header_bytes() const {
    return factors ? (offsets ? 2 : 1) * kPanelOutputs * 2 : 0;
  }
  constexpr uint32_t high_offset() const { return low_bits * kGroupInputs * kPanelOutputs / 8; }
  constexpr uint32_t scale_bytes() const {
    return factors || exponents ? 1 : 2;  // of one scale or offset
  }
  constexpr uint32_t scale_offset(uint32_t half) const {
    return high_offset() + high_bits * kGroupInputs * kPanelOutputs / 8 +
           half * kPanelOutputs * scale_bytes();
  }
  constexpr uint32_t offset_offset() const { return scale_offset(scales); }
  constexpr uint32_t group_bytes() const { return scale_offset(scales + (offsets ? 1 : 0)); }
  constexpr uint32_t block_bytes() const { return header_bytes() + groups() * group_bytes(); }
};
constexpr PanelLayout LayoutOf(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return {.low_bits = 4, .scales = 1, .zero_point = 8};
    case DType::kQ4_1:
      return {.low_bits = 4, .scales = 1, .offsets = true};
    case DType::kQ4_K:
      return {.low_bits = 4, .scales = 1, .offsets = true, .factors = true};
    case DType::kQ5_0:
      return {.low_bits = 4, .high_bits = 1, .scales = 1, .zero_point = 16};
    case DType::kQ5_1:
      return {.low_bits = 4, .high_bits = 1, .scales = 1, .offsets = true};
    case DType::kQ5_K:
      return {.low_bits = 4, .high_bits = 1, .scales = 1, .offsets = true, .factors = true};
    case DType::kQ6_K:
      return {.low_bits = 4, .high_bits = 2, .scales = 2, .zero_point = 32, .factors = true};
    case DType::kQ8_0:
      return {.low_bits = 8, .scales = 1, .zero_point = 128};
    case DType::kBF16:
      return {.low_bits = 8, .high_bits = 4, .scales = 1, .zero_point = 2048, .exponents = true};
    case DType::kF32:
    case DType::kF16:
      break;
  }
  return {};
}

// Shape [outputs, inputs]; y = W x. A resource type; immutable, so any thread may read it.
class PackedMatrix {
 public:
  // Packs `rows`, the file's bytes of `outputs` rows of `inputs` weights. Deterministic for any
  // pool. kInvalidArgument: a side is 0 or above kMatrixSideMax, inputs no multiple of the type's
  // block (32 at least for quantised types); kCorrupt: `rows` has not exactly the size the shape
  // needs; kOverloaded: out of memory. Bytes of any value are accepted.
  // The memory comes from `arena`, which must then outlive the matrix, or is the matrix's own.
  static base::Result<PackedMatrix> Pack(DType dtype, uint64_t outputs, uint64_t inputs,
                                         std::span<const std::byte> rows, ThreadPool& pool,
                                         WeightArena* arena = nullptr);

  PackedMatrix() = default;  // empty: outputs() == 0
  // As packed: F32 for a BF16 matrix that had to be widened.
  DType dtype() const { return dtype_; }
  uint32_t outputs() const { return outputs_; }
  uint32_t inputs() const { return inputs_; }
  uint32_t panels() const { return (outputs_ + kPanelOutputs - 1) / kPanelOutputs; }
  uint64_t panel_bytes() const { return panel_bytes_; }
  const std::byte* panel(uint32_t index) const { return data_ + index * panel_bytes_; }
  // Output `output`'s weights, the same bits as DequantizeRow makes of the file's row (BF16 in
  // groups: the rounded ones). out: [inputs]. Slow: for single rows, such as those of an embedding.
  void UnpackRow(uint32_t output, std::span<float> out) const;
  // Resident memory, padding included.
  uint64_t size_bytes() const { return panel_bytes_ * panels(); }

 private:
  DType dtype_ = DType::kF32;
  uint32_t outputs_ = 0;
  uint32_t inputs_ = 0;
  uint64_t panel_bytes_ = 0;
  const std::byte* data_ = nullptr;  // in the arena, or in own_memory_
  AlignedBuffer own_memory_;
};

}  // namespace plumb::tensor
