// tensor/cpu/f4_tables.h
// What the 16 codes of E2M1 are worth under each scale: the bits of the f32 that a product with the
// weight takes, so that a kernel widens and scales with one permutation. A kernel meets a handful
// of scales, which then stay in the first-level cache. Outside any target's region, since it is
// computed by the compiler.
#pragma once

#include <cstdint>

namespace plumb::tensor {

// |value| is {0, 1/2, 1, 3/2, 2, 3, 4, 6}[code mod 8] * 2^(scale - 127), as f32 bits; what is too
// large becomes infinity, and nothing is too small.
constexpr uint32_t F4MagnitudeBits(uint32_t code, uint32_t scale) {
  constexpr int kExponent[] = {0, -1, 0, 0, 1, 1, 2, 2};
  const uint32_t magnitude = code % 8;
  if (magnitude == 0) return 0;
  const int exponent = static_cast<int>(scale) + kExponent[magnitude];  // biased by 127
  const uint32_t half = magnitude >= 2 && magnitude % 2 == 1 ? 1 : 0;   // 3/2, 3 and 6
  if (exponent >= 255) return 0x7f800000u;
  if (exponent >= 1) return static_cast<uint32_t>(exponent) << 23 | half << 22;
  return (1u << 23 | half << 22) >> (1 - exponent);
}

// [scale][code]
struct F4Values {
  alignas(64) uint32_t bits[256][16];
};
constexpr F4Values MakeF4Values() {
  F4Values values = {};
  for (uint32_t scale = 0; scale < 256; ++scale) {
    for (uint32_t code = 0; code < 16; ++code) {
      values.bits[scale][code] = F4MagnitudeBits(code, scale) | code / 8 << 31;
    }
  }
  return values;
}

// The same values, whose lower halves are 0, as the two upper bytes: sixteen entries of a byte are
// what a lookup of AVX2 can choose from.
struct F4Bytes {
  struct {
    uint8_t high[16];
    uint8_t low[16];
  } of[256];  // by scale
};
constexpr F4Bytes MakeF4Bytes() {
  F4Bytes bytes = {};
  for (uint32_t scale = 0; scale < 256; ++scale) {
    for (uint32_t code = 0; code < 16; ++code) {
      const uint32_t value = F4MagnitudeBits(code, scale) | code / 8 << 31;
      bytes.of[scale].high[code] = static_cast<uint8_t>(value >> 24);
      bytes.of[scale].low[code] = static_cast<uint8_t>(value >> 16);
    }
  }
  return bytes;
}

}  // namespace plumb::tensor
