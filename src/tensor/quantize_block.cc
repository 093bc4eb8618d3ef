// tensor/quantize_block.cc
// Checks, floats, and the formats of 32 weights behind tensor/quantize_block.h; the K formats are
// quantize_block_k.cc's. How a scale is searched: quantize_block_fit.h.
#include "tensor/quantize_block.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "tensor/float16.h"
#include "tensor/quantize_block_fit.h"
#include "tensor/quantize_block_k.h"

namespace plumb::tensor {
namespace {

constexpr size_t kWeights = 32;
constexpr uint32_t kSteps = 16;  // candidates of a search
constexpr Levels kLevelsQ8 = {-127, 127};
constexpr float kBFloat16Max = 0x1.FEp127f;

void PutHalf(std::byte* p, float value) {
  const uint16_t half = FloatToHalf(value);
  std::memcpy(p, &half, sizeof half);
}

// To nearest even; `value` is finite and within kBFloat16Max.
uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Input i in the low nibble of byte i, input i + 16 in the high one; `quants` less `low` are those
// bits.
void PutNibbles(const float* quants, float low, std::byte* nibbles) {
  for (size_t i = 0; i < kWeights / 2; ++i) {
    const auto first = static_cast<uint32_t>(quants[i] - low) & 15;
    const auto second = static_cast<uint32_t>(quants[i + kWeights / 2] - low) & 15;
    nibbles[i] = static_cast<std::byte>(first | second << 4);
  }
}

// Bit i of four little-endian bytes is the fifth bit of input i.
void PutFifthBits(const float* quants, float low, std::byte* bits) {
  uint32_t all = 0;
  for (size_t i = 0; i < kWeights; ++i) {
    all |= (static_cast<uint32_t>(quants[i] - low) >> 4) << i;
  }
  std::memcpy(bits, &all, sizeof all);
}

// Q4_0, Q5_0: scale, fifth bits, nibbles.
void QuantizeScaled(const float* x, Levels levels, std::byte* block) {
  const Fit fit = FitScale<kWeights>(x, levels, kSteps, RoundToHalf);
  float quants[kWeights];
  RoundWith<kWeights>(x, fit.scale, 0, levels, quants);
  PutHalf(block, fit.scale);
  block += 2;
  if (levels.high == 15) {
    PutFifthBits(quants, levels.low, block);
    block += 4;
  }
  PutNibbles(quants, levels.low, block);
}

// Q4_1, Q5_1: scale, offset, fifth bits, nibbles.
void QuantizeRange(const float* x, float high, std::byte* block) {
  const auto stored = [](const Fit& fit) {
    return Fit{RoundToHalf(fit.scale), RoundToHalf(fit.offset), 0};
  };
  const Fit fit = FitRange<kWeights>(x, high, kHalfMax, kSteps, stored);
  float quants[kWeights];
  RoundWith<kWeights>(x, fit.scale, fit.offset, {0, high}, quants);
  PutHalf(block, fit.scale);
  PutHalf(block + 2, fit.offset);
  block += 4;
  if (high == 31) {
    PutFifthBits(quants, 0, block);
    block += 4;
  }
  PutNibbles(quants, 0, block);
}

void QuantizeQ8(const float* x, std::byte* block) {
  constexpr uint32_t kStepsQ8 = 6;
  const Fit fit = FitScale<kWeights>(x, kLevelsQ8, kStepsQ8, RoundToHalf);
  float quants[kWeights];
  RoundWith<kWeights>(x, fit.scale, 0, kLevelsQ8, quants);
  PutHalf(block, fit.scale);
  for (size_t i = 0; i < kWeights; ++i) {
    block[2 + i] = static_cast<std::byte>(static_cast<int8_t>(quants[i]));
  }
}

// One block of any type.
void QuantizeBlock(DType dtype, const float* x, std::byte* block) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(block, x, sizeof *x);
      return;
    case DType::kF16:
      PutHalf(block, *x);
      return;
    case DType::kBF16: {
      const uint16_t value = FloatToBFloat16(*x);
      std::memcpy(block, &value, sizeof value);
      return;
    }
    case DType::kQ4_0:
      return QuantizeScaled(x, {-8, 7}, block);
    case DType::kQ5_0:
      return QuantizeScaled(x, {-16, 15}, block);
    case DType::kQ4_1:
      return QuantizeRange(x, 15, block);
    case DType::kQ5_1:
      return QuantizeRange(x, 31, block);
    case DType::kQ8_0:
      return QuantizeQ8(x, block);
    case DType::kQ4_K:
      return QuantizeQ4K(x, block);
    case DType::kQ5_K:
      return QuantizeQ5K(x, block);
    case DType::kQ6_K:
      return QuantizeQ6K(x, block);
  }
  CHECK(false) << static_cast<int>(dtype);
}

base::Status CheckValues(DType dtype, std::span<const float> values) {
  const float most = MagnitudeMax(dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::fabs(values[i]) <= most) continue;  // false for NaN
    if (!std::isfinite(values[i])) {
      return base::Corrupt(fmt::format("element {} of a row is {}", i, values[i]));
    }
    return base::Corrupt(fmt::format("element {} of a row is {}, too large for {} (at most {})", i,
                                     values[i], Name(dtype), most));
  }
  return base::OkStatus();
}

}  // namespace

float MagnitudeMax(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kBF16:
      return kBFloat16Max;
    case DType::kQ4_0:
      return 7 * kHalfMax;
    case DType::kQ5_0:
      return 15 * kHalfMax;
    case DType::kQ8_0:
      return 127 * kHalfMax;
    case DType::kQ4_K:
    case DType::kQ5_K:
    case DType::kQ6_K:
      return 63 * kHalfMax;  // of Q4_K and Q5_K: the largest offset
    default:
      return kHalfMax;  // F16, and the offset of Q4_1 and Q5_1
  }
}

base::Status QuantizeRow(DType dtype, std::span<const float> values, std::span<std::byte> row) {
  ASSIGN_OR_RETURN(const uint64_t bytes, RowBytes(dtype, values.size()));
  if (bytes != row.size()) {
    return base::Corrupt(fmt::format("a {} row of {} elements needs {} bytes, not {}", Name(dtype),
                                     values.size(), bytes, row.size()));
  }
  RETURN_IF_ERROR(CheckValues(dtype, values));
  const DTypeTraits& traits = Traits(dtype);
  const size_t blocks = values.size() / traits.block_inputs;
  for (size_t i = 0; i < blocks; ++i) {
    QuantizeBlock(dtype, values.data() + i * traits.block_inputs,
                  row.data() + i * traits.block_bytes);
  }
  return base::OkStatus();
}

}  // namespace plumb::tensor
