// tensor/dequantize.cc: rows of any type to f32 through ReadGroup.
// The block layouts are quant_group.cc's.
#include "tensor/dequantize.h"

#include <fmt/format.h>

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

}  // namespace

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
