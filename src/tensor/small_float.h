// tensor/small_float.h
// Floats of 4 and 8 bits in scalar code: E4M3 (no infinities, NaN is 0x7f and 0xff), E2M1 (neither)
// and scales E8M0 (2^(byte - 127), NaN is 255). Source: OCP Microscaling Formats (MX) v1.0,
// sections 5.3 and 5.4. Rounding is to nearest, ties to the even code. Thread: any; pure.
#pragma once

#include <bit>
#include <cstdint>

namespace plumb::tensor {

constexpr float kFloatNan = __builtin_nanf("");
constexpr uint8_t kE4m3Nan = 0x7f;
constexpr uint8_t kE8m0Nan = 0xff;
constexpr float kE4m3Max = 448;
constexpr float kE2m1Max = 6;

constexpr float E4m3Value(uint8_t code) {
  const uint32_t exponent = code >> 3 & 15;
  const auto mantissa = static_cast<float>(code & 7);
  if ((code & 0x7f) == kE4m3Nan) return kFloatNan;
  float magnitude = mantissa * 0x1p-9f;
  if (exponent != 0) {
    magnitude = (8 + mantissa) * std::bit_cast<float>((exponent - 10 + 127) << 23);
  }
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// By code, for loops.
struct E4m3Values {
  float values[256];
};
constexpr E4m3Values MakeE4m3Values() {
  E4m3Values table = {};
  for (int code = 0; code < 256; ++code) {
    table.values[code] = E4m3Value(static_cast<uint8_t>(code));
  }
  return table;
}
inline constexpr E4m3Values kE4m3Values = MakeE4m3Values();

constexpr float E2m1Value(uint8_t code) {
  constexpr float kMagnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float magnitude = kMagnitudes[code & 7];
  return (code & 8) != 0 ? -magnitude : magnitude;
}

constexpr float E8m0Value(uint8_t code) {
  if (code == kE8m0Nan) return kFloatNan;
  return std::bit_cast<float>(code == 0 ? 0x400000u : uint32_t{code} << 23);
}

// For a finite x; beyond the largest magnitude: that. Zero and what rounds to it keep the sign.
constexpr uint8_t E4m3Code(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  const float magnitude = std::bit_cast<float>(bits & 0x7fffffffu);
  if (magnitude >= kE4m3Max) return sign | 0x7e;
  // The step is 2^-3 of the power of two below, at least that of the subnormals. Adding 2^23 steps
  // rounds to a multiple of it.
  uint32_t exponent = std::bit_cast<uint32_t>(magnitude) >> 23;
  if (exponent < 127 - 6) exponent = 127 - 6;
  const float shift = std::bit_cast<float>((exponent + 20) << 23);
  const auto steps = std::bit_cast<uint32_t>(magnitude + shift) & 0x7fffffu;  // 0 ... 16
  return static_cast<uint8_t>(sign | (((exponent - (127 - 6)) << 3) + steps));
}

constexpr uint8_t E2m1Code(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint8_t>(bits >> 28 & 8);
  const float magnitude = std::bit_cast<float>(bits & 0x7fffffffu);
  constexpr float kMiddles[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  uint8_t code = 0;
  for (uint8_t below = 0; below < 7; ++below) {  // between the codes `below` and below + 1
    const bool even = below % 2 == 0;
    if (even ? magnitude > kMiddles[below] : magnitude >= kMiddles[below]) code = below + 1;
  }
  return sign | code;
}

// The least power of two that is not below x, as E8M0; x is finite and normal.
constexpr uint8_t E8m0Above(float x) {
  return static_cast<uint8_t>((std::bit_cast<uint32_t>(x) + 0x7fffffu) >> 23);
}

}  // namespace plumb::tensor
