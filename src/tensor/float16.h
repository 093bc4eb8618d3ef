// tensor/float16.h
// Half and bfloat16 in scalar code, with the roundings of the F16C and AVX-512 instructions: to
// nearest even, subnormals kept, NaN stays NaN (quiet).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace plumb::tensor {

constexpr float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 31) {
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13 | quiet);
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

constexpr uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more rounds to infinity
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: the sum's last bit is a subnormal's
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<uint32_t>(shifted) - 0x3f000000u;
  } else {
    half = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

constexpr float BFloat16ToFloat(uint16_t value) {
  return std::bit_cast<float>(uint32_t{value} << 16);
}

// From bytes of any alignment.
inline uint16_t LoadU16(const std::byte* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline float LoadHalf(const std::byte* p) { return HalfToFloat(LoadU16(p)); }
inline float LoadFloat(const std::byte* p) {
  float value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace plumb::tensor
