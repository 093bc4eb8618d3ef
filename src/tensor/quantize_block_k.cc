// tensor/quantize_block_k.cc
// In three moves: fit every small group by itself; express the groups' scales as integers of one
// f16, each trying its neighbours; refit the f16 numbers with everything else fixed and round
// again, as long as that helps. Read first: quantize_block_fit.h.
#include "tensor/quantize_block_k.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/float16.h"
#include "tensor/quantize_block_fit.h"

namespace plumb::tensor {
namespace {

constexpr uint32_t kSteps = 16;  // candidates of a group's search
constexpr uint32_t kRefits = 3;  // at most, of the f16 numbers
constexpr float kSmallMax = 63;  // 6-bit scales and minima of Q4_K, Q5_K
constexpr Levels kScalesQ6 = {-128, 127};
constexpr Levels kLevelsQ6 = {-32, 31};

void PutHalf(std::byte* p, float value) {
  const uint16_t half = FloatToHalf(value);
  std::memcpy(p, &half, sizeof half);
}

// Q4_K and Q5_K: x = d scale q - d_min minimum, for 8 groups of 32.
constexpr size_t kRangeGroups = 8, kRangeWeights = 32;
struct RangeBlock {
  float d = 0, d_min = 0;
  float scales[kRangeGroups] = {}, minima[kRangeGroups] = {};  // whole numbers of [0, 63]
  float quants[kKWeights] = {};
  float error = INFINITY;
};

// Fills everything but d and d_min for the groups' ideal fits.
void RoundRange(const float* x, const Fit* ideal, float high, RangeBlock& block) {
  block.error = 0;
  for (size_t g = 0; g < kRangeGroups; ++g) {
    const float scale = block.d == 0 ? 0 : NearestLevel(ideal[g].scale / block.d, 0.0f, kSmallMax);
    const float minimum =
        block.d_min == 0 ? 0 : NearestLevel(-ideal[g].offset / block.d_min, 0.0f, kSmallMax);
    float* quants_best = block.quants + g * kRangeWeights;
    block.scales[g] = block.minima[g] = 0;
    float best = RoundWith<kRangeWeights>(x + g * kRangeWeights, 0, 0, {0, high}, quants_best);
    for (float s = std::max(scale - 1, 0.0f); s <= std::min(scale + 1, kSmallMax); ++s) {
      for (float m = std::max(minimum - 1, 0.0f); m <= std::min(minimum + 1, kSmallMax); ++m) {
        float quants[kRangeWeights];
        const float error = RoundWith<kRangeWeights>(x + g * kRangeWeights, block.d * s,
                                                     -(block.d_min * m), {0, high}, quants);
        if (!(error < best)) continue;
        best = error;
        block.scales[g] = s;
        block.minima[g] = m;
        std::memcpy(quants_best, quants, sizeof quants);
      }
    }
    block.error += best;
  }
}

// d and d_min of least squared error for the block's integers.
void RefitRange(const float* x, RangeBlock& block) {
  // x = d a - d_min b with a = scale q, b = minimum.
  float aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
  for (size_t g = 0; g < kRangeGroups; ++g) {
    const FitSums sums =
        SumsOf<kRangeWeights>(x + g * kRangeWeights, block.quants + g * kRangeWeights);
    aa += block.scales[g] * block.scales[g] * sums.qq;
    ab += block.scales[g] * block.minima[g] * sums.q;
    bb += block.minima[g] * block.minima[g] * static_cast<float>(kRangeWeights);
    ax += block.scales[g] * sums.qx;
    bx += block.minima[g] * sums.x;
  }
  const float determinant = aa * bb - ab * ab;
  if (determinant > 0) {
    block.d = RoundToHalf((bb * ax - ab * bx) / determinant);
    block.d_min = RoundToHalf((ab * ax - aa * bx) / determinant);
  } else if (aa > 0 && bb == 0) {
    block.d = RoundToHalf(ax / aa);
  }
  block.d = std::max(block.d, 0.0f);
  block.d_min = std::max(block.d_min, 0.0f);
}

RangeBlock FitRangeBlock(const float* x, float high) {
  Fit ideal[kRangeGroups];
  float scale_most = 0, offset_least = 0;
  for (size_t g = 0; g < kRangeGroups; ++g) {
    ideal[g] = FitRange<kRangeWeights>(x + g * kRangeWeights, high, 0, kSteps,
                                       [](const Fit& fit) { return fit; });
    scale_most = std::max(scale_most, ideal[g].scale);
    offset_least = std::min(offset_least, ideal[g].offset);
  }
  RangeBlock best;
  RangeBlock block;
  block.d = RoundToHalfAbove(scale_most / kSmallMax);
  block.d_min = RoundToHalfAbove(-offset_least / kSmallMax);
  for (uint32_t round = 0; round <= kRefits; ++round) {
    RoundRange(x, ideal, high, block);
    if (!(block.error < best.error)) break;
    best = block;
    RefitRange(x, block);
  }
  return best;
}

// d, d_min, then eight 6-bit scales and minima in 12 bytes.
void PutRangeHead(const RangeBlock& block, std::byte* to) {
  PutHalf(to, block.d);
  PutHalf(to + 2, block.d_min);
  std::byte* packed = to + 4;
  uint32_t scales[kRangeGroups], minima[kRangeGroups];
  for (size_t g = 0; g < kRangeGroups; ++g) {
    scales[g] = static_cast<uint32_t>(block.scales[g]);
    minima[g] = static_cast<uint32_t>(block.minima[g]);
  }
  for (size_t g = 0; g < 4; ++g) {
    packed[g] = static_cast<std::byte>(scales[g] | scales[g + 4] >> 4 << 6);
    packed[g + 4] = static_cast<std::byte>(minima[g] | minima[g + 4] >> 4 << 6);
    packed[g + 8] = static_cast<std::byte>((scales[g + 4] & 15) | (minima[g + 4] & 15) << 4);
  }
}

// 32 bytes hold two groups, the even one in the low nibbles.
void PutRangeNibbles(const RangeBlock& block, std::byte* nibbles) {
  for (size_t pair = 0; pair < kRangeGroups / 2; ++pair) {
    const float* low = block.quants + 2 * pair * kRangeWeights;
    for (size_t i = 0; i < kRangeWeights; ++i) {
      const auto first = static_cast<uint32_t>(low[i]) & 15;
      const auto second = static_cast<uint32_t>(low[i + kRangeWeights]) & 15;
      nibbles[pair * kRangeWeights + i] = static_cast<std::byte>(first | second << 4);
    }
  }
}

// Q6_K: x = d scale q, for 16 groups of 16.
constexpr size_t kScaleGroups = 16, kScaleWeights = 16;
struct ScaleBlock {
  float d = 0;
  float scales[kScaleGroups] = {};  // whole numbers of [-128, 127]
  float quants[kKWeights] = {};
  float error = INFINITY;
};

void RoundScales(const float* x, const Fit* ideal, ScaleBlock& block) {
  block.error = 0;
  for (size_t g = 0; g < kScaleGroups; ++g) {
    const float scale =
        block.d == 0 ? 0 : NearestLevel(ideal[g].scale / block.d, kScalesQ6.low, kScalesQ6.high);
    float best = INFINITY;
    for (float s = std::max(scale - 1, kScalesQ6.low); s <= std::min(scale + 1, kScalesQ6.high);
         ++s) {
      float quants[kScaleWeights];
      const float error =
          RoundWith<kScaleWeights>(x + g * kScaleWeights, block.d * s, 0, kLevelsQ6, quants);
      if (!(error < best)) continue;
      best = error;
      block.scales[g] = s;
      std::memcpy(block.quants + g * kScaleWeights, quants, sizeof quants);
    }
    block.error += best;
  }
}

void RefitScales(const float* x, ScaleBlock& block) {
  float aa = 0, ax = 0;
  for (size_t g = 0; g < kScaleGroups; ++g) {
    const FitSums sums =
        SumsOf<kScaleWeights>(x + g * kScaleWeights, block.quants + g * kScaleWeights);
    aa += block.scales[g] * block.scales[g] * sums.qq;
    ax += block.scales[g] * sums.qx;
  }
  if (aa > 0) block.d = RoundToHalf(ax / aa);
}

ScaleBlock FitScaleBlock(const float* x) {
  Fit ideal[kScaleGroups];
  float most = 0;  // of largest magnitude, with its sign
  for (size_t g = 0; g < kScaleGroups; ++g) {
    ideal[g] = FitScale<kScaleWeights>(x + g * kScaleWeights, kLevelsQ6, kSteps,
                                       [](float scale) { return scale; });
    if (std::fabs(ideal[g].scale) > std::fabs(most)) most = ideal[g].scale;
  }
  ScaleBlock best;
  ScaleBlock block;
  block.d = -std::copysign(RoundToHalfAbove(std::fabs(most / kScalesQ6.low)), most);
  for (uint32_t round = 0; round <= kRefits; ++round) {
    RoundScales(x, ideal, block);
    if (!(block.error < best.error)) break;
    best = block;
    RefitScales(x, block);
  }
  return best;
}

}  // namespace

void QuantizeQ4K(const float* x, std::byte* block) {
  const RangeBlock fit = FitRangeBlock(x, 15);
  PutRangeHead(fit, block);
  PutRangeNibbles(fit, block + 16);
}

void QuantizeQ5K(const float* x, std::byte* block) {
  const RangeBlock fit = FitRangeBlock(x, 31);
  PutRangeHead(fit, block);
  for (size_t i = 0; i < kRangeWeights; ++i) {
    uint32_t fifths = 0;
    for (size_t g = 0; g < kRangeGroups; ++g) {
      fifths |= (static_cast<uint32_t>(fit.quants[g * kRangeWeights + i]) >> 4) << g;
    }
    block[16 + i] = static_cast<std::byte>(fifths);
  }
  PutRangeNibbles(fit, block + 48);
}

// Halves of 128 weights; in each, 32-weight group k has its low bits in nibble k / 2 of the bytes
// 32 (k % 2) on, and two high bits in bits 2k of the half's 32 high bytes.
void QuantizeQ6K(const float* x, std::byte* block) {
  const ScaleBlock fit = FitScaleBlock(x);
  std::memset(block, 0, 192);
  for (size_t i = 0; i < kKWeights; ++i) {
    const size_t half = i / 128, k = i / 32 % 4, place = i % 32;
    const auto quant = static_cast<uint32_t>(fit.quants[i] - kLevelsQ6.low);
    block[64 * half + 32 * (k % 2) + place] |= static_cast<std::byte>((quant & 15) << (k / 2 * 4));
    block[128 + 32 * half + place] |= static_cast<std::byte>(quant >> 4 << (2 * k));
  }
  for (size_t g = 0; g < kScaleGroups; ++g) {
    block[192 + g] = static_cast<std::byte>(static_cast<int8_t>(fit.scales[g]));
  }
  PutHalf(block + 208, fit.d);
}

}  // namespace plumb::tensor
