// tensor/panel_read.cc: the arithmetic of the layout, one element at a time. Also the way back from
// a panel to a row.
#include "tensor/panel_read.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "tensor/float16.h"

namespace plumb::tensor {

PanelGroup PanelGroupAt(DType dtype, const std::byte* panel, uint32_t index) {
  const PanelLayout layout = LayoutOf(dtype);
  const std::byte* block = panel + size_t{index / layout.groups()} * layout.block_bytes();
  return {block, block + layout.header_bytes() + index % layout.groups() * layout.group_bytes()};
}

int32_t PanelQuant(DType dtype, PanelGroup group, uint32_t lane, uint32_t i) {
  const PanelLayout layout = LayoutOf(dtype);
  const uint32_t quad = i / 4;
  const uint32_t place = 4 * lane + i % 4;
  uint32_t quant = 0;
  if (layout.low_bits == 8) {
    quant = static_cast<uint32_t>(group.bytes[quad * 64 + place]);
  } else {
    quant = static_cast<uint32_t>(group.bytes[quad / 2 * 64 + place]) >> (quad % 2 * 4) & 15;
  }
  if (layout.high_bits != 0) {
    const uint32_t quads = 8 / layout.high_bits;
    const auto high =
        static_cast<uint32_t>(group.bytes[layout.high_offset() + quad / quads * 64 + place]);
    const uint32_t mask = (1u << layout.high_bits) - 1;
    quant |= (high >> (quad % quads * layout.high_bits) & mask) << layout.low_bits;
  }
  return static_cast<int32_t>(quant);
}

float PanelScale(DType dtype, PanelGroup group, uint32_t half, uint32_t lane) {
  const PanelLayout layout = LayoutOf(dtype);
  const std::byte* vector = group.bytes + layout.scale_offset(half);
  if (layout.exponents) {
    return std::bit_cast<float>(static_cast<uint32_t>(vector[lane]) << 23);
  }
  if (!layout.factors) return LoadHalf(vector + 2 * lane);
  const auto factor = static_cast<uint8_t>(vector[lane]);
  const int32_t value = dtype == DType::kQ6_K ? static_cast<int8_t>(factor) : int32_t{factor};
  return LoadHalf(group.header + 2 * lane) * static_cast<float>(value);
}

float PanelOffset(DType dtype, PanelGroup group, uint32_t lane) {
  const PanelLayout layout = LayoutOf(dtype);
  const std::byte* vector = group.bytes + layout.offset_offset();
  if (!layout.factors) return LoadHalf(vector + 2 * lane);
  return LoadHalf(group.header + 2 * kPanelOutputs + 2 * lane) *
         static_cast<float>(static_cast<uint8_t>(vector[lane]));
}

float PanelFloat(DType dtype, const std::byte* panel, uint32_t lane, uint32_t i) {
  const size_t element = size_t{i} * kPanelOutputs + lane;
  if (dtype == DType::kF16) return LoadHalf(panel + 2 * element);
  return LoadFloat(panel + 4 * element);
}

void PackedMatrix::UnpackRow(uint32_t output, std::span<float> out) const {
  CHECK(output < outputs_ && out.size() == inputs_) << output << " " << out.size();
  const std::byte* packed = panel(output / kPanelOutputs);
  const uint32_t lane = output % kPanelOutputs;
  const PanelLayout layout = LayoutOf(dtype_);
  if (!layout.quantized()) {
    for (uint32_t i = 0; i < inputs_; ++i) out[i] = PanelFloat(dtype_, packed, lane, i);
    return;
  }
  const uint32_t half_inputs = kGroupInputs / layout.scales;
  for (uint32_t g = 0; g < inputs_ / kGroupInputs; ++g) {
    const PanelGroup group = PanelGroupAt(dtype_, packed, g);
    const float offset = layout.offsets ? PanelOffset(dtype_, group, lane) : 0.0f;
    for (uint32_t half = 0; half < layout.scales; ++half) {
      const float scale = PanelScale(dtype_, group, half, lane);
      for (uint32_t i = half * half_inputs; i < (half + 1) * half_inputs; ++i) {
        const int32_t quant =
            PanelQuant(dtype_, group, lane, i) - static_cast<int32_t>(layout.zero_point);
        out[size_t{g} * kGroupInputs + i] = std::fma(scale, static_cast<float>(quant), offset);
      }
    }
  }
}

}  // namespace plumb::tensor
