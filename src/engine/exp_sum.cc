// engine/exp_sum.cc
// Two always-inlined loops, compiled once for each target. Why not intrinsics: element-wise code is
// vectorised without them, and one source cannot disagree with itself.
#include "engine/exp_sum.h"

#include <bit>
#include <cstdint>
#include <initializer_list>

#define PLUMB_INLINE __attribute__((always_inline)) inline

namespace plumb::engine {
namespace {

constexpr size_t kLanes = 16;

PLUMB_INLINE float ExpNegativeInline(float x) {
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

PLUMB_INLINE float WeightInline(float x) {
  // Floats of [2^-9, 2^-8) are 2^-32 apart, larger ones a multiple of that.
  constexpr float kShift = 0x1.0p-9f;
  return (ExpNegativeInline(x) + kShift) - kShift;
}

// Sums `term(i)` for i below `count`; lane i % kLanes takes it.
template <typename Term>
PLUMB_INLINE double SumInLanes(size_t count, Term term) {
  double sums[kLanes] = {};
  float terms[kLanes];
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) terms[lane] = term(i + lane);
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += terms[lane];
  }
  for (size_t lane = 0; i < count; ++i, ++lane) sums[lane] += term(i);
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

PLUMB_INLINE double ExpSumInline(const float* logits, size_t count, float max) {
  return SumInLanes(count, [=](size_t i) __attribute__((always_inline)) {
    return ExpNegativeInline(logits[i] - max);
  });
}

PLUMB_INLINE double WeightSumInline(const float* logits, size_t count, float max, float scale,
                                    float* __restrict weights) {
  return SumInLanes(count, [=](size_t i) __attribute__((always_inline)) {
    return weights[i] = WeightInline((logits[i] - max) * scale);
  });
}

// Defines the kernels of a target: a macro, because a target attribute cannot be a parameter.
#define PLUMB_EXP_KERNELS(name, attribute)                                                    \
  attribute double ExpSum##name(const float* logits, size_t count, float max) {               \
    return ExpSumInline(logits, count, max);                                                  \
  }                                                                                           \
  attribute double WeightSum##name(const float* logits, size_t count, float max, float scale, \
                                   float* weights) {                                          \
    return WeightSumInline(logits, count, max, scale, weights);                               \
  }                                                                                           \
  constexpr ExpKernels k##name{ExpSum##name, WeightSum##name};

PLUMB_EXP_KERNELS(Baseline, )
#if defined(__x86_64__)
PLUMB_EXP_KERNELS(Avx2, __attribute__((target("avx2"))))
#if defined(__clang__)  // it knows the width only as a flag of the whole file
PLUMB_EXP_KERNELS(Avx512, __attribute__((target("avx512f,avx512dq"))))
#else
PLUMB_EXP_KERNELS(Avx512, __attribute__((target("avx512f,avx512dq,prefer-vector-width=512"))))
#endif
#endif

}  // namespace

float ExpNegative(float x) { return ExpNegativeInline(x); }
float Weight(float x) { return WeightInline(x); }

const ExpKernels* ExpKernelsFor(ExpTarget target) {
  if (target == ExpTarget::kBaseline) return &kBaseline;
#if defined(__x86_64__)
  if (target == ExpTarget::kAvx2 && __builtin_cpu_supports("avx2")) return &kAvx2;
  if (target == ExpTarget::kAvx512 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512dq")) {
    return &kAvx512;
  }
#endif
  return nullptr;
}

const ExpKernels& BestExpKernels() {
  for (const ExpTarget target : {ExpTarget::kAvx512, ExpTarget::kAvx2}) {
    if (const ExpKernels* kernels = ExpKernelsFor(target)) return *kernels;
  }
  return kBaseline;
}

}  // namespace plumb::engine
