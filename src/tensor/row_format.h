// tensor/row_format.h
// How a vector of f32 is stored in a cache row, bit by bit: the formats of DeepSeek-V4.1's keys and
// values. Formulas: docs/numerics_deepseek_v41.md, "Cache rows" (sources there). Encoding never
// fails: a group that holds anything not finite is stored as NaN, all of it. The functions without
// a kernel table are the judge; those with one have equal bits and are faster. Read next:
// small_float.h (the elements), gathered_attention.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plumb::tensor {

struct KernelTable;

enum class RowFormat : uint8_t {
  kF32,        // as it is
  kF8Group32,  // [n bytes E4M3 | n / 32 scales E8M0]: window rows, draft rows, activations
  kF4Group16,  // [n / 2 bytes E2M1 | n / 16 scales E4M3]: main rows
  kF4Group32,  // [n / 2 bytes E2M1 | n / 32 scales E8M0]: index keys and queries
};

// Rows consist of chunks of so many values: n is a multiple of it, kF32 excepted.
constexpr uint32_t kRowChunk = 32;

// 288 for a main row of 512, 68 for an index key of 128, 528 for a window row of 512.
constexpr uint64_t RowBytes(RowFormat format, uint64_t n) {
  switch (format) {
    case RowFormat::kF32:
      return 4 * n;
    case RowFormat::kF8Group32:
      return n + n / 32;
    case RowFormat::kF4Group16:
      return n / 2 + n / 16;
    case RowFormat::kF4Group32:
      return n / 2 + n / 32;
  }
  return 0;
}

// All: any alignment, no allocation. Thread: any; pure.
void EncodeRow(RowFormat format, std::span<const float> values, std::byte* row);
void DecodeRow(RowFormat format, const std::byte* row, std::span<float> values);
void EncodeRow(const KernelTable& kernels, RowFormat format, std::span<const float> values,
               std::byte* row);
void DecodeRow(const KernelTable& kernels, RowFormat format, const std::byte* row,
               std::span<float> values);

// values = Decode(Encode(values)), without the bytes; kF32 changes nothing. Several rows side by
// side are one, since groups are rounded each by itself.
void RoundRow(RowFormat format, std::span<float> values);
void RoundRow(const KernelTable& kernels, RowFormat format, std::span<float> values);

// To the nearest bfloat16, ties to even; NaN stays NaN.
void RoundToBf16(std::span<float> values);
void RoundToBf16(const KernelTable& kernels, std::span<float> values);

}  // namespace plumb::tensor
