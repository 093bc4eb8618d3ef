// model/families/deepseek_step.cc: roundings of the three modes, and sums in the order that
// docs/numerics.md fixes.
#include "model/families/deepseek_step.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "tensor/exact_math.h"
#include "tensor/numerics.h"

namespace plumb::model {

using tensor::BlockFormat;
using tensor::RowFormat;

DeepseekRoundings RoundingsOf(Roundings mode) {
  if (mode == Roundings::kF32) return {};
  return {.window = RowFormat::kF8Group32,
          .main = RowFormat::kF4Group16,
          .key = RowFormat::kF4Group32,
          .activations = mode == Roundings::kFull};
}

std::string DeepseekNumericsId(Roundings mode, uint32_t replay_rows) {
  const char* name = mode == Roundings::kF32 ? "f32" : mode == Roundings::kKvq ? "kvq" : "full";
  return tensor::NumericsOfProcess(fmt::format("d1-{}-k{}", name, replay_rows));
}

float FoldLanes(float (&lanes)[16]) {
  for (uint32_t half = 8; half >= 1; half /= 2) {
    for (uint32_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  return lanes[0];
}

float SumOfSquares(const float* x, uint64_t n) {
  DCHECK(n % 16 == 0) << n;
  float lanes[16] = {};
  for (uint64_t k = 0; k < n; k += 16) {
    for (uint32_t lane = 0; lane < 16; ++lane) {
      const float square = x[k + lane] * x[k + lane];
      lanes[lane] = lanes[lane] + square;
    }
  }
  return FoldLanes(lanes);
}

float Sigmoid(float x) { return 1.0f / (1.0f + tensor::ExactExp(-x)); }

void RoundActivations(tensor::Compute compute, const DeepseekRoundings& roundings, uint32_t rows,
                      uint64_t n, float* x) {
  if (!roundings.activations) return;
  ForEachRow(compute, rows, n,
             [&](uint32_t row) { tensor::RoundToBf16(compute.kernels, {x + row * n, n}); });
}

void RoundInputs(tensor::Compute compute, const DeepseekRoundings& roundings,
                 const tensor::BlockMatrix& matrix, uint32_t rows, uint64_t n, float* x) {
  const bool quantised =
      matrix.format == BlockFormat::kF8Block32 || matrix.format == BlockFormat::kF4Group32;
  if (!roundings.activations || !quantised) return;
  ForEachRow(compute, rows, n, [&](uint32_t row) {
    tensor::RoundRow(compute.kernels, RowFormat::kF8Group32, {x + row * n, n});
  });
}

const float* RoundedInputs(tensor::Compute compute, const DeepseekRoundings& roundings,
                           const tensor::BlockMatrix& matrix, uint32_t rows, uint64_t n,
                           const float* x, float* copy) {
  if (!roundings.activations) return x;
  std::copy_n(x, rows * n, copy);
  RoundInputs(compute, roundings, matrix, rows, n, copy);
  return copy;
}

void Multiply(tensor::Compute compute, const tensor::BlockMatrix& matrix, const float* x,
              uint32_t rows, float* out) {
  const tensor::BlockProduct product = {.matrix = matrix,
                                        .x = x,
                                        .x_stride = matrix.inputs,
                                        .rows = rows,
                                        .out = out,
                                        .out_stride = matrix.outputs};
  tensor::BlockLinear(compute, {&product, 1});
}

}  // namespace plumb::model
