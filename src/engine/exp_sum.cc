// engine/exp_sum.cc: one always-inlined loop, compiled once for each target.
#include "engine/exp_sum.h"

#include <bit>
#include <cstdint>

#include "base/check.h"

namespace plumb::engine {
namespace {

constexpr size_t kLanes = 16;

__attribute__((always_inline)) inline float ExpNegativeInline(float x) {
  constexpr float kLog2E = 1.44269504088896341f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  x = x < -86.0f ? -86.0f : x;
  const float shifted = x * kLog2E + kRound;
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float value = (p * (r * r) + r) + 1.0f;
  return std::bit_cast<float>(std::bit_cast<int32_t>(value) + exponent * (1 << 23));
}

__attribute__((always_inline)) inline double ExpSumInline(const float* __restrict logits,
                                                          size_t count, float max, float scale,
                                                          float* __restrict weights) {
  double sums[kLanes] = {};
  float terms[kLanes];
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      terms[lane] = ExpNegativeInline((logits[i + lane] - max) * scale);
    }
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += terms[lane];
    if (weights != nullptr) {
      for (size_t lane = 0; lane < kLanes; ++lane) weights[i + lane] = terms[lane];
    }
  }
  for (size_t lane = 0; i < count; ++i, ++lane) {
    const float term = ExpNegativeInline((logits[i] - max) * scale);
    sums[lane] += term;
    if (weights != nullptr) weights[i] = term;
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

double ExpSumBaseline(const float* logits, size_t count, float max, float scale, float* weights) {
  return ExpSumInline(logits, count, max, scale, weights);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) double ExpSumAvx2(const float* logits, size_t count, float max,
                                                  float scale, float* weights) {
  return ExpSumInline(logits, count, max, scale, weights);
}
__attribute__((target("avx512f,avx512dq,prefer-vector-width=512"))) double ExpSumAvx512(
    const float* logits, size_t count, float max, float scale, float* weights) {
  return ExpSumInline(logits, count, max, scale, weights);
}
#endif

}  // namespace

float ExpNegative(float x) { return ExpNegativeInline(x); }

bool HasExpTarget(ExpTarget target) {
#if defined(__x86_64__)
  if (target == ExpTarget::kAvx2) return __builtin_cpu_supports("avx2");
  if (target == ExpTarget::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  }
#endif
  return target == ExpTarget::kBaseline;
}

double ExpSumOn(ExpTarget target, std::span<const float> logits, float max, float scale,
                float* weights) {
  CHECK(HasExpTarget(target));
#if defined(__x86_64__)
  if (target == ExpTarget::kAvx512) {
    return ExpSumAvx512(logits.data(), logits.size(), max, scale, weights);
  }
  if (target == ExpTarget::kAvx2) {
    return ExpSumAvx2(logits.data(), logits.size(), max, scale, weights);
  }
#endif
  return ExpSumBaseline(logits.data(), logits.size(), max, scale, weights);
}

double ExpSum(std::span<const float> logits, float max, float scale, float* weights) {
  static const ExpTarget target = HasExpTarget(ExpTarget::kAvx512) ? ExpTarget::kAvx512
                                  : HasExpTarget(ExpTarget::kAvx2) ? ExpTarget::kAvx2
                                                                   : ExpTarget::kBaseline;
  return ExpSumOn(target, logits, max, scale, weights);
}

}  // namespace plumb::engine
