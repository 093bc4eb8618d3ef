// tensor/ref/products.cc
// The judge of matrix products: one output at a time, in the order that docs/numerics.md states,
// straight from the documented panel layout. Nothing is shared with cpu/.
#include <bit>
#include <cmath>

#include "tensor/float16.h"
#include "tensor/ref/reference.h"

namespace plumb::tensor::ref {
namespace {

float ScaleAt(const std::byte* vector, uint32_t scale_bytes, uint32_t lane) {
  return scale_bytes == 2 ? LoadHalf(vector + 2 * lane) : LoadFloat(vector + 4 * lane);
}

// The stored q of input `i` of a group.
int32_t QuantAt(const std::byte* group, const PanelLayout& layout, uint32_t lane, uint32_t i) {
  const uint32_t quad = i / 4;
  if (layout.quant_bytes == 256) {
    const auto byte = static_cast<uint32_t>(group[quad / 2 * 64 + 4 * lane + i % 4]);
    return static_cast<int32_t>(quad % 2 == 0 ? byte & 15 : byte >> 4);
  }
  return static_cast<int32_t>(group[quad * 64 + 4 * lane + i % 4]);
}

// The quant of input `i` of a group that begins at entry `first`.
int32_t ActivationAt(const ProductTask& task, size_t first, uint32_t i) {
  if (task.bits == ActivationBits::k8) {
    return static_cast<int8_t>(task.quants[first + i]);
  }
  constexpr uint32_t kPlace[4] = {0, 2, 1, 3};
  const std::byte* place = task.quants + 2 * (first + i / 4 * 4 + kPlace[i % 4]);
  return static_cast<int16_t>(LoadU16(place));
}

float QuantProduct(const ProductTask& task, const std::byte* panel, uint32_t lane, uint32_t row) {
  const PanelLayout layout = LayoutOf(task.matrix->dtype());
  const uint32_t inputs = task.matrix->inputs();
  const uint32_t tile = row / kTileRows * kTileRows;
  const uint32_t tile_rows = task.rows - tile < kTileRows ? task.rows - tile : kTileRows;
  const uint32_t part_inputs = kGroupInputs / layout.scales;
  float sum = 0;
  for (uint32_t g = 0; g < inputs / kGroupInputs; ++g) {
    const std::byte* group = panel + size_t{g} * layout.group_bytes();
    const size_t entry = size_t{g} * tile_rows + (row - tile);
    const size_t first_quant = size_t{tile} * inputs + entry * kGroupInputs;
    const ActivationGroup& activation = task.groups[size_t{tile} * (inputs / kGroupInputs) + entry];
    for (uint32_t part = 0; part < layout.scales; ++part) {
      int32_t dot = 0;
      for (uint32_t i = part * part_inputs; i < (part + 1) * part_inputs; ++i) {
        const int32_t weight =
            QuantAt(group, layout, lane, i) - static_cast<int32_t>(layout.zero_point);
        dot += weight * ActivationAt(task, first_quant, i);
      }
      const float scale = ScaleAt(group + layout.scale_offset(part), layout.scale_bytes, lane);
      sum = std::fma(static_cast<float>(dot), scale * activation.scale, sum);
    }
    if (layout.offsets) {
      const float offset = ScaleAt(group + layout.offset_offset(), layout.scale_bytes, lane);
      sum = std::fma(offset, activation.scaled_sum, sum);
    }
  }
  return sum;
}

float FloatProduct(const ProductTask& task, const std::byte* panel, uint32_t lane, uint32_t row) {
  const uint32_t inputs = task.matrix->inputs();
  const float* x = task.x + size_t{row} * inputs;
  float sum = 0;
  for (uint32_t i = 0; i < inputs; ++i) {
    const size_t element = size_t{i} * kPanelOutputs + lane;
    float weight = 0;
    switch (task.matrix->dtype()) {
      case DType::kF16:
        weight = LoadHalf(panel + 2 * element);
        break;
      case DType::kBF16:
        weight = BFloat16ToFloat(LoadU16(panel + 2 * element));
        break;
      default:
        weight = LoadFloat(panel + 4 * element);
        break;
    }
    sum = std::fma(x[i], weight, sum);
  }
  return sum;
}

}  // namespace

void Multiply(const ProductTask& task) {
  const uint32_t outputs = task.matrix->outputs();
  for (uint32_t panel = task.panel_begin; panel < task.panel_end; ++panel) {
    for (uint32_t lane = 0; lane < kPanelOutputs; ++lane) {
      const uint32_t output = panel * kPanelOutputs + lane;
      if (output >= outputs) break;
      for (uint32_t row = task.row_begin; row < task.row_end; ++row) {
        const std::byte* weights = task.matrix->panel(panel);
        float value = IsQuantized(task.matrix->dtype()) ? QuantProduct(task, weights, lane, row)
                                                        : FloatProduct(task, weights, lane, row);
        float* out = task.out + size_t{row} * outputs + output;
        if (task.bias != nullptr) value = value + task.bias[output];
        *out = task.add ? *out + value : value;
      }
    }
  }
}

namespace {

// Where ActivationAt reads it.
void StoreActivation(const QuantizeTask& task, size_t first, uint32_t i, int32_t quant) {
  if (task.bits == ActivationBits::k8) {
    task.quants[first + i] = static_cast<std::byte>(static_cast<int8_t>(quant));
    return;
  }
  constexpr uint32_t kPlace[4] = {0, 2, 1, 3};
  std::byte* place = task.quants + 2 * (first + i / 4 * 4 + kPlace[i % 4]);
  const auto bits = static_cast<uint16_t>(quant);
  place[0] = static_cast<std::byte>(bits & 255);
  place[1] = static_cast<std::byte>(bits >> 8);
}

}  // namespace

void Quantize(const QuantizeTask& task) {
  for (uint32_t g = 0; g < task.inputs / kGroupInputs; ++g) {
    const float* x = task.x + size_t{g} * kGroupInputs;
    const size_t first_quant = size_t{g} * kGroupInputs * task.tile_rows;
    float largest = 0;
    bool finite = true;
    for (uint32_t i = 0; i < kGroupInputs; ++i) {
      finite = finite && std::isfinite(x[i]);
      largest = std::fmax(largest, std::fabs(x[i]));
    }
    const bool tiny = largest < 0x1.0p-100f;
    float scale = 0;
    if (!finite) {
      scale = std::nanf("");
    } else if (!tiny) {
      scale = largest / QuantMax(task.bits);
    }
    const float inverse = finite && !tiny ? QuantMax(task.bits) / largest : 0.0f;
    int32_t sum = 0;
    int32_t first = 0;
    for (uint32_t i = 0; i < kGroupInputs; ++i) {
      const int32_t quant = finite ? static_cast<int32_t>(std::nearbyint(x[i] * inverse)) : 0;
      StoreActivation(task, first_quant, i, quant);
      sum += quant;
      if (i < 16) first += quant;
    }
    task.groups[size_t{g} * task.tile_rows] = {
        .scale = scale,
        .scaled_sum = scale * static_cast<float>(sum),
        .minus8_sum = -8 * sum,
        .minus8_first = -8 * first,
    };
  }
}

}  // namespace plumb::tensor::ref
