// tensor/quantize_block_fit.h
// Least-squares fits of x = scale q + offset with q an integer of [low, high], for the block
// quantisers of this folder. Each candidate is judged by the error that is left after the weights
// have been rounded with the very scale that is stored, and the best is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/float16.h"

namespace plumb::tensor {

struct Levels {
  float low = 0, high = 0;  // whole numbers
};
struct Fit {
  float scale = 0, offset = 0;
  float error = 0;  // sum of squares
};

// Weights all below this are stored as zeros: their scale would be no f16.
constexpr float kTiny = 0x1.0p-60f;
constexpr float kHalfMax = 65504.0f;

inline float RoundToHalf(float value) {
  return HalfToFloat(FloatToHalf(std::clamp(value, -kHalfMax, kHalfMax)));
}

// The same for a factor of integers: not less than `value`, but for the last bits of a normal f16,
// so that the largest integer suffices. `value` >= 0.
inline float RoundToHalfAbove(float value) {
  constexpr float kStep = 0x1.0p-24f;  // between subnormal f16 numbers
  const float rounded = RoundToHalf(value);
  return rounded < value * (1 - 0x1.0p-10f) && value < kHalfMax ? rounded + kStep : rounded;
}

// Four floats at once, by the compiler's vector type: four lanes on every machine, so that sums
// have one order everywhere.
constexpr size_t kLanes = 4;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
inline Lanes LoadLanes(const float* p) {
  Lanes lanes;
  std::memcpy(&lanes, p, sizeof lanes);
  return lanes;
}
inline float Total(const Lanes& a, const Lanes& b) {
  const Lanes sum = a + b;
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// Nearest even integer of `value` within the levels. T: float or Lanes.
template <typename T>
T NearestLevel(T value, T low, T high) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  value = value < low ? low : value;
  value = value > high ? high : value;
  return (value + kRound) - kRound;
}

// Rounds x to `quants` with this scale and offset; returns the squared error.
template <size_t N>
float RoundWith(const float* x, float scale, float offset, Levels levels, float* quants) {
  static_assert(N % (2 * kLanes) == 0);
  const float inverse = scale == 0 ? 0 : 1.0f / scale;
  const Lanes low = Lanes{} + levels.low, high = Lanes{} + levels.high;
  Lanes errors[2] = {};
  for (size_t i = 0; i < N; i += kLanes) {
    const Lanes shifted = LoadLanes(x + i) - offset;
    const Lanes quant = NearestLevel<Lanes>(shifted * inverse, low, high);
    const Lanes rest = shifted - scale * quant;
    std::memcpy(quants + i, &quant, sizeof quant);
    errors[i / kLanes % 2] += rest * rest;
  }
  return Total(errors[0], errors[1]);
}

struct FitSums {
  float q, qq, x, qx;
};
template <size_t N>
FitSums SumsOf(const float* x, const float* quants) {
  Lanes q[2] = {}, qq[2] = {}, sum_x[2] = {}, qx[2] = {};
  for (size_t i = 0; i < N; i += kLanes) {
    const size_t half = i / kLanes % 2;
    const Lanes quant = LoadLanes(quants + i), value = LoadLanes(x + i);
    q[half] += quant;
    qq[half] += quant * quant;
    sum_x[half] += value;
    qx[half] += quant * value;
  }
  return {Total(q[0], q[1]), Total(qq[0], qq[1]), Total(sum_x[0], sum_x[1]), Total(qx[0], qx[1])};
}

// The weight of largest magnitude, with its sign; the first of equals.
template <size_t N>
float Extreme(const float* x) {
  float extreme = 0;
  for (size_t i = 0; i < N; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  return extreme;
}

// The best scale without offset. `stored` turns a scale into the one that will be stored.
template <size_t N, typename Stored>
Fit FitScale(const float* x, Levels levels, uint32_t steps, const Stored& stored) {
  const float extreme = Extreme<N>(x);
  if (std::fabs(extreme) < kTiny) return {0, 0, 0};
  Fit best{0, 0, INFINITY};
  float quants[N];
  const auto consider = [&](float scale) {
    scale = stored(scale);
    const float error = RoundWith<N>(x, scale, 0, levels, quants);
    if (error < best.error) best = {scale, 0, error};
  };
  // The extreme weight stands at the level `end`, or up to 1.2 levels inside or beyond it.
  for (const float end : {levels.low, levels.high}) {
    consider(extreme / end);
    const float outward = end < 0 ? -1.0f : 1.0f;
    for (uint32_t step = 0; step < steps; ++step) {
      const float place = 2.4f * static_cast<float>(step) / static_cast<float>(steps) - 1.2f;
      RoundWith<N>(x, extreme / (end + outward * place), 0, levels, quants);
      const FitSums sums = SumsOf<N>(x, quants);
      if (sums.qq > 0) consider(sums.qx / sums.qq);
    }
  }
  return best;
}

// Scale and offset of least squared error for fixed quants; with `offset_max`, the offset is at
// most that. A scale of 0 when the quants are all equal.
inline Fit SolveFit(const FitSums& sums, float count, float offset_max) {
  const float determinant = count * sums.qq - sums.q * sums.q;
  if (!(determinant > 0)) return {0, std::min(sums.x / count, offset_max), 0};
  Fit fit;
  fit.scale = (count * sums.qx - sums.q * sums.x) / determinant;
  fit.offset = (sums.qq * sums.x - sums.q * sums.qx) / determinant;
  if (fit.offset > offset_max) {
    fit.offset = offset_max;
    fit.scale = (sums.qx - offset_max * sums.q) / sums.qq;
  }
  return fit;
}

// The best scale and offset (of at most `offset_max`), with quants of [0, high]. `stored` as above,
// of a Fit.
template <size_t N, typename Stored>
Fit FitRange(const float* x, float high, float offset_max, uint32_t steps, const Stored& stored) {
  float least = x[0];
  float most = x[0];
  for (size_t i = 1; i < N; ++i) {
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
  }
  least = std::min(least, offset_max);
  if (most - least < kTiny) {
    Fit flat = stored(Fit{0, std::fabs(least) < kTiny ? 0 : least, 0});
    float quants[N];
    flat.error = RoundWith<N>(x, 0, flat.offset, {0, high}, quants);
    return flat;
  }
  Fit best{0, 0, INFINITY};
  float quants[N];
  const auto consider = [&](Fit fit) {
    fit = stored(fit);
    fit.error = RoundWith<N>(x, fit.scale, fit.offset, {0, high}, quants);
    if (fit.error < best.error) best = fit;
  };
  consider({(most - least) / high, least, 0});
  consider({0, 0, 0});  // the least of evils for weights below the smallest f16
  // The ends of the range stand at the ends of the levels, or up to 1.2 levels inside or beyond;
  // two rounds of refitting follow.
  for (uint32_t step = 0; step < steps; ++step) {
    const float place = 2.4f * static_cast<float>(step) / static_cast<float>(steps) - 1.2f;
    const float scale = (most - least) / (high + place);
    const float offset = std::min(least + 0.5f * place * scale, offset_max);
    RoundWith<N>(x, scale, offset, {0, high}, quants);
    for (int round = 0; round < 2; ++round) {
      const Fit fit = SolveFit(SumsOf<N>(x, quants), N, offset_max);
      if (!(fit.scale > 0)) break;
      consider(fit);
    }
  }
  return best;
}

}  // namespace plumb::tensor
