// tensor/dequantize.cc: rows of any type to f32 through ReadGroup.
// The block layouts are quant_group.cc's.
#include "tensor/dequantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "tensor/float16.h"
#include "tensor/packed_matrix.h"
#include "tensor/quant_group.h"

namespace plumb::tensor {
namespace {

void DequantizeGroups(DType dtype, const std::byte* row, std::span<float> out) {
  const auto zero_point = static_cast<int32_t>(LayoutOf(dtype).zero_point);
  for (size_t first = 0; first < out.size(); first += kGroupInputs) {
    const QuantGroup group = ReadGroup(dtype, row, static_cast<uint32_t>(first / kGroupInputs));
    for (uint32_t i = 0; i < kGroupInputs; ++i) {
      const auto value = static_cast<float>(int32_t{group.quants[i]} - zero_point);
      out[first + i] = std::fma(group.scales[i / 16], value, group.offset);
    }
  }
}

// Where the f16 numbers of a block lie; one place twice where there is only one number.
struct BlockFloats {
  uint32_t first, second;
};
BlockFloats FloatsOf(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ6_K:
      return {208, 208};
    default:
      return {0, 0};
  }
}

// An exponent of all ones is an infinity or a NaN.
bool BlockIsFinite(DType dtype, BlockFloats floats, const std::byte* block) {
  constexpr uint32_t kHalfExponent = 0x7c00, kBFloatExponent = 0x7f80;
  if (dtype == DType::kF32) return std::isfinite(LoadFloat(block));
  if (dtype == DType::kBF16) return (LoadU16(block) & kBFloatExponent) != kBFloatExponent;
  return (LoadU16(block + floats.first) & kHalfExponent) != kHalfExponent &&
         (LoadU16(block + floats.second) & kHalfExponent) != kHalfExponent;
}

}  // namespace

bool AllFinite(DType dtype, std::span<const std::byte> rows, ThreadPool& pool) {
  constexpr uint64_t kItemBlocks = 1 << 15;
  const uint64_t block_bytes = Traits(dtype).block_bytes;
  const uint64_t blocks = rows.size() / block_bytes;
  const BlockFloats floats = FloatsOf(dtype);
  std::atomic<bool> finite{true};
  pool.ParallelFor(static_cast<uint32_t>((blocks + kItemBlocks - 1) / kItemBlocks),
                   [&](uint32_t item) {
                     const uint64_t end = std::min(blocks, (item + 1) * kItemBlocks);
                     for (uint64_t block = item * kItemBlocks; block < end; ++block) {
                       if (BlockIsFinite(dtype, floats, rows.data() + block * block_bytes))
                         continue;
                       finite.store(false, std::memory_order_relaxed);
                       return;
                     }
                   });
  return finite.load(std::memory_order_relaxed);
}

base::Status DequantizeRow(DType dtype, std::span<const std::byte> row, std::span<float> out) {
  ASSIGN_OR_RETURN(const uint64_t bytes, RowBytes(dtype, out.size()));
  if (bytes != row.size() || out.size() > kMatrixSideMax) {
    return base::Corrupt(fmt::format("a {} row of {} elements needs {} bytes, not {}", Name(dtype),
                                     out.size(), bytes, row.size()));
  }
  switch (dtype) {
    case DType::kF32:
      std::memcpy(out.data(), row.data(), row.size());
      break;
    case DType::kF16:
      for (size_t i = 0; i < out.size(); ++i) out[i] = LoadHalf(row.data() + 2 * i);
      break;
    case DType::kBF16:
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = BFloat16ToFloat(LoadU16(row.data() + 2 * i));
      }
      break;
    default:
      DequantizeGroups(dtype, row.data(), out);
  }
  return base::OkStatus();
}

}  // namespace plumb::tensor
