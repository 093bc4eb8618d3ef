// tensor/ref/products.cc
// The judge of matrix products: one output at a time, in the order that docs/numerics.md states,
// straight from the documented panel layout. Nothing is shared with cpu/.
#include <cmath>

#include "tensor/panel_read.h"
#include "tensor/ref/reference.h"

namespace plumb::tensor::ref {
namespace {

// Where input `i` of a group is that begins at entry `first`.
size_t ActivationPlace(size_t first, uint32_t i) {
  constexpr uint32_t kPlace[4] = {0, 2, 1, 3};
  return first + i / 4 * 4 + kPlace[i % 4];
}

float QuantProduct(const ProductTask& task, const std::byte* panel, uint32_t lane, uint32_t row) {
  const DType dtype = task.matrix->dtype();
  const PanelLayout layout = LayoutOf(dtype);
  const uint32_t inputs = task.matrix->inputs();
  const uint32_t tile = row / kTileRows * kTileRows;
  const uint32_t tile_rows = task.rows - tile < kTileRows ? task.rows - tile : kTileRows;
  const uint32_t part_inputs = kGroupInputs / layout.scales;
  float acc = 0;
  for (uint32_t g = 0; g < inputs / kGroupInputs; ++g) {
    const PanelGroup group = PanelGroupAt(dtype, panel, g);
    const size_t entry = size_t{g} * tile_rows + (row - tile);
    const size_t first = size_t{tile} * inputs + entry * kGroupInputs;
    int32_t sum = 0;
    for (uint32_t part = 0; part < layout.scales; ++part) {
      int32_t dot = 0;
      for (uint32_t i = part * part_inputs; i < (part + 1) * part_inputs; ++i) {
        const int32_t weight =
            PanelQuant(dtype, group, lane, i) - static_cast<int32_t>(layout.zero_point);
        const int32_t quant = task.quants[ActivationPlace(first, i)];
        dot += weight * quant;
        sum += quant;
      }
      acc = std::fma(static_cast<float>(dot), PanelScale(dtype, group, part, lane), acc);
    }
    if (layout.offsets) {
      acc = std::fma(static_cast<float>(sum), PanelOffset(dtype, group, lane), acc);
    }
  }
  return acc * task.scales[row];
}

float FloatProduct(const ProductTask& task, const std::byte* panel, uint32_t lane, uint32_t row) {
  const uint32_t inputs = task.matrix->inputs();
  const float* x = task.x + size_t{row} * inputs;
  float sum = 0;
  for (uint32_t i = 0; i < inputs; ++i) {
    sum = std::fma(x[i], PanelFloat(task.matrix->dtype(), panel, lane, i), sum);
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
        float value = LayoutOf(task.matrix->dtype()).quantized()
                          ? QuantProduct(task, weights, lane, row)
                          : FloatProduct(task, weights, lane, row);
        float* out = task.out + size_t{row} * outputs + output;
        if (task.bias != nullptr) value = value + task.bias[output];
        *out = task.add ? *out + value : value;
      }
    }
  }
}

void Quantize(const QuantizeTask& task) {
  float largest = 0;
  bool finite = true;
  for (uint32_t i = 0; i < task.inputs; ++i) {
    finite = finite && std::isfinite(task.x[i]);
    largest = std::fmax(largest, std::fabs(task.x[i]));
  }
  const bool zero = !finite || largest < 0x1.0p-100f;
  *task.scale = !finite ? std::nanf("") : zero ? 0.0f : largest / kQuantMax;
  const float inverse = zero ? 0.0f : kQuantMax / largest;
  for (uint32_t g = 0; g < task.inputs / kGroupInputs; ++g) {
    const size_t first = size_t{g} * kGroupInputs * task.tile_rows;
    int32_t sums[2] = {0, 0};
    for (uint32_t i = 0; i < kGroupInputs; ++i) {
      const float x = task.x[size_t{g} * kGroupInputs + i];
      const int32_t quant = zero ? 0 : static_cast<int32_t>(std::nearbyint(x * inverse));
      task.quants[ActivationPlace(first, i)] = static_cast<int16_t>(quant);
      sums[i / 16] += quant;
    }
    task.groups[size_t{g} * task.tile_rows] = {
        .sum = static_cast<float>(sums[0] + sums[1]),
        .minus8_sum = -8 * (sums[0] + sums[1]),
        .minus8_half = {-8 * sums[0], -8 * sums[1]},
    };
  }
}

}  // namespace plumb::tensor::ref
