// tensor/cpu/f8_tables.h
// What the 128 magnitudes of E4M3 are worth: the two bytes of the bf16 that WidenF8 would give, so
// that a kernel with byte lookups widens 64 at once. Outside any target's region, since it is
// computed by the compiler.
#pragma once

#include <cstdint>

namespace plumb::tensor {

// Value * 2^-exponents as bf16 bits; every E4M3 magnitude is one, and 127, NaN, counts as 480.
constexpr uint16_t F8MagnitudeBits(uint32_t code, uint32_t exponents) {
  const uint32_t mantissa = code % 8;
  if (code >= 8) return static_cast<uint16_t>((code / 8 + 120 - exponents) << 7 | mantissa << 4);
  if (mantissa == 0) return 0;
  const uint32_t place = mantissa >= 4 ? 2 : mantissa >= 2 ? 1 : 0;  // of the leading bit
  const uint32_t fraction = (mantissa - (1u << place)) << (7 - place);
  return static_cast<uint16_t>((118 + place - exponents) << 7 | fraction);
}

struct F8Bytes {
  alignas(64) uint8_t high[128];
  alignas(64) uint8_t low[128];
};
constexpr F8Bytes MakeF8Bytes(uint32_t exponents) {
  F8Bytes bytes = {};
  for (uint32_t code = 0; code < 128; ++code) {
    bytes.high[code] = static_cast<uint8_t>(F8MagnitudeBits(code, exponents) >> 8);
    bytes.low[code] = static_cast<uint8_t>(F8MagnitudeBits(code, exponents) & 0xff);
  }
  return bytes;
}

}  // namespace plumb::tensor
