// tensor/ref/rows.cc
// The judge of row-wise functions, and the scalar kernel table.
#include <cmath>

#include "tensor/cpu/tables.h"
#include "tensor/exact_math.h"
#include "tensor/ref/reference.h"

namespace plumb::tensor {
namespace ref {

float FoldLanes(const float (&lanes)[16]) {
  float eight[8];
  for (int i = 0; i < 8; ++i) eight[i] = lanes[i] + lanes[i + 8];
  float four[4];
  for (int i = 0; i < 4; ++i) four[i] = eight[i] + eight[i + 4];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

void RmsNormRow(const float* x, const float* weight, float epsilon, uint32_t n, float* out) {
  float lanes[16] = {};
  for (uint32_t k = 0; k < n; ++k) lanes[k % 16] = std::fma(x[k], x[k], lanes[k % 16]);
  const float mean = FoldLanes(lanes) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(mean + epsilon);
  for (uint32_t k = 0; k < n; ++k) out[k] = (x[k] * inverse) * weight[k];
}

void SwiGluRow(const float* gate, const float* up, uint32_t n, float* out) {
  for (uint32_t i = 0; i < n; ++i) {
    const float silu = gate[i] / (1.0f + ExactExp(-gate[i]));
    out[i] = silu * up[i];
  }
}

void GeGluRow(const float* gate, const float* up, uint32_t n, float* out) {
  for (uint32_t i = 0; i < n; ++i) {
    const float g = gate[i];
    const float cube = (g * g) * kGeluCubic;
    const float exponent = std::fma(cube, g, g) * kGeluExponent;
    out[i] = (g / (1.0f + ExactExp(exponent))) * up[i];
  }
}

void AddRow(const float* a, const float* b, uint32_t n, float* out) {
  for (uint32_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void AddScaledRow(const float* x, float scale, uint32_t n, float* out) {
  for (uint32_t i = 0; i < n; ++i) out[i] = std::fma(scale, x[i], out[i]);
}

void SoftCapRow(const float* x, float cap, uint64_t n, float* out) {
  for (uint64_t i = 0; i < n; ++i) {
    const float ratio = x[i] / cap;
    const float tanh = 1.0f - 2.0f / (1.0f + ExactExp(ratio + ratio));
    out[i] = cap * tanh;
  }
}

void RotateHeads(float* x, uint32_t heads, uint32_t head_dim, uint32_t dims, RotaryPairing pairing,
                 const float* cosines, const float* sines) {
  const bool halves = pairing == RotaryPairing::kHalves;
  for (uint32_t head = 0; head < heads; ++head) {
    for (uint32_t i = 0; i < dims / 2; ++i) {
      float* first = x + size_t{head} * head_dim + (halves ? i : 2 * i);
      float* second = first + (halves ? dims / 2 : 1);
      const float a = *first;
      const float b = *second;
      const float b_sine = b * sines[i];
      const float a_sine = a * sines[i];
      *first = std::fma(a, cosines[i], -b_sine);
      *second = std::fma(b, cosines[i], a_sine);
    }
  }
}

float LogSumExpRow(const float* x, uint64_t n) {
  float largest = x[0];
  for (uint64_t k = 1; k < n; ++k) largest = x[k] > largest ? x[k] : largest;
  float lanes[16] = {};
  for (uint64_t k = 0; k < n; ++k) lanes[k % 16] += ExactExp(x[k] - largest);
  return largest + ExactLog(FoldLanes(lanes));
}

void SoftmaxRow(const float* x, uint64_t n, float* out) {
  float largest = x[0];
  for (uint64_t k = 1; k < n; ++k) largest = x[k] > largest ? x[k] : largest;
  float lanes[16] = {};
  for (uint64_t k = 0; k < n; ++k) {
    out[k] = ExactExp(x[k] - largest);
    lanes[k % 16] += out[k];
  }
  const float sum = FoldLanes(lanes);
  for (uint64_t k = 0; k < n; ++k) out[k] = out[k] / sum;
}

}  // namespace ref

const KernelTable& ScalarKernels() {
  static constexpr KernelTable kTable = {.name = "scalar",
                                         .product = ref::Multiply,
                                         .multiply_blocks = ref::MultiplyBlocks,
                                         .quantize = ref::Quantize,
                                         .attention = ref::Attention,
                                         .fold = ref::FoldPages,
                                         .store = ref::StoreKeyValue,
                                         .rms_norm = ref::RmsNormRow,
                                         .swiglu = ref::SwiGluRow,
                                         .geglu = ref::GeGluRow,
                                         .add = ref::AddRow,
                                         .add_scaled = ref::AddScaledRow,
                                         .soft_cap = ref::SoftCapRow,
                                         .rotate = ref::RotateHeads,
                                         .log_sum_exp = ref::LogSumExpRow,
                                         .softmax = ref::SoftmaxRow,
                                         .cache_rows = {.encode = ref::EncodeRow,
                                                        .decode = ref::DecodeRow,
                                                        .round = ref::RoundRow,
                                                        .round_bf16 = ref::RoundToBf16,
                                                        .attend = ref::AttendGathered,
                                                        .index_scores = ref::IndexScores}};
  return kTable;
}

}  // namespace plumb::tensor
