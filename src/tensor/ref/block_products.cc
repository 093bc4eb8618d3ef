// tensor/ref/block_products.cc
// The judge of products with matrices as stored: one weight, one input at a time, in the order that
// docs/numerics_deepseek_v41.md states. Nothing is shared with cpu/.
#include <cmath>

#include "tensor/block_task.h"
#include "tensor/float16.h"
#include "tensor/ref/reference.h"

namespace plumb::tensor::ref {
namespace {

float E4M3(uint32_t code) {
  const auto exponent = static_cast<int>(code >> 3 & 15);
  const auto mantissa = static_cast<float>(code & 7);
  const float magnitude = exponent == 0 ? std::ldexp(mantissa, -9)  // subnormal: m/8 * 2^-6
                                        : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

float E2M1(uint32_t code) {
  constexpr float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return (code & 8) != 0 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
}

float E8M0(std::byte scale) { return std::ldexp(1.0f, static_cast<int>(scale) - 127); }

float WeightAt(const BlockMatrix& matrix, uint64_t output, uint64_t input) {
  const uint64_t inputs = matrix.inputs;
  const uint64_t index = output * inputs + input;
  const uint64_t groups = (inputs + 31) / 32;
  switch (matrix.format) {
    case BlockFormat::kF32:
      return LoadFloat(matrix.weights + 4 * index);
    case BlockFormat::kBf16:
      return BFloat16ToFloat(LoadU16(matrix.weights + 2 * index));
    case BlockFormat::kF8Block32:
      return E4M3(static_cast<uint32_t>(matrix.weights[index])) *
             E8M0(matrix.scales[output / 32 * groups + input / 32]);
    case BlockFormat::kF4Group32:
      return E2M1(static_cast<uint32_t>(matrix.weights[index / 2]) >> 4 * (index % 2) & 15) *
             E8M0(matrix.scales[output * groups + input / 32]);
  }
  return 0;
}

}  // namespace

void MultiplyBlocks(const BlockTask& task) {
  const BlockMatrix& matrix = *task.matrix;
  for (uint32_t output = task.output_begin; output < task.output_end; ++output) {
    for (uint32_t row = 0; row < task.rows; ++row) {
      const float* x = task.x + row * task.x_stride;
      float lanes[16] = {};
      for (uint32_t k = 0; k < matrix.inputs; ++k) {
        lanes[k % 16] = std::fma(WeightAt(matrix, output, k), x[k], lanes[k % 16]);
      }
      task.out[row * task.out_stride + output] = FoldLanes(lanes);
    }
  }
}

}  // namespace plumb::tensor::ref
