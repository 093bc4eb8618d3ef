// eval/quality/lib/ggml_quantizer_error.cc
// The relative root mean square error that ggml's quantisers leave on the random weights of
// src/tensor/quantize_block_test.cc, where these figures stand. Build it against plumb's tensor,
// telemetry and base libraries and against ggml-base, of one machine.
#include <ggml.h>

#include <cmath>
#include <iostream>
#include <span>
#include <vector>

#include "base/random.h"
#include "tensor/dequantize.h"

namespace {

using plumb::tensor::DType;

constexpr int64_t kRows = 64, kInputs = 1024;

struct Pair {
  DType dtype;
  ggml_type type;
};
constexpr Pair kTypes[] = {
    {DType::kQ4_0, GGML_TYPE_Q4_0}, {DType::kQ4_1, GGML_TYPE_Q4_1}, {DType::kQ5_0, GGML_TYPE_Q5_0},
    {DType::kQ5_1, GGML_TYPE_Q5_1}, {DType::kQ8_0, GGML_TYPE_Q8_0}, {DType::kQ4_K, GGML_TYPE_Q4_K},
    {DType::kQ5_K, GGML_TYPE_Q5_K}, {DType::kQ6_K, GGML_TYPE_Q6_K},
};

// As in the test.
std::vector<float> RandomWeights(size_t count, bool heavy) {
  plumb::base::Rng rng(7);
  std::vector<float> weights(count);
  for (float& weight : weights) {
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += rng.Uniform();
    const auto n = static_cast<float>(normal);
    weight = 0.02f * (heavy ? n * std::fabs(n) : n);
  }
  return weights;
}

double RelativeError(const Pair& pair, const std::vector<float>& weights) {
  const size_t row_bytes = ggml_row_size(pair.type, kInputs);
  std::vector<std::byte> rows(row_bytes * kRows);
  ggml_quantize_init(pair.type);
  ggml_quantize_chunk(pair.type, weights.data(), rows.data(), 0, kRows, kInputs, nullptr);
  double error = 0, size = 0;
  std::vector<float> back(kInputs);
  for (int64_t row = 0; row < kRows; ++row) {
    const std::span<const std::byte> bytes(rows.data() + row * row_bytes, row_bytes);
    if (!plumb::tensor::DequantizeRow(pair.dtype, bytes, back).ok()) return NAN;
    for (int64_t i = 0; i < kInputs; ++i) {
      const double weight = weights[static_cast<size_t>(row * kInputs + i)];
      error += std::pow(back[static_cast<size_t>(i)] - weight, 2);
      size += weight * weight;
    }
  }
  return std::sqrt(error / size);
}

}  // namespace

int main() {
  for (const Pair& pair : kTypes) {
    const double normal = RelativeError(pair, RandomWeights(kRows * kInputs, false));
    const double heavy = RelativeError(pair, RandomWeights(kRows * kInputs, true));
    std::cout << Name(pair.dtype) << " " << normal << " " << heavy << "\n";
  }
}
