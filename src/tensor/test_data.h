// tensor/test_data.h
// Random inputs for the tests of this module: seeded, with plausible scales, and comparison by
// bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "tensor/dtype.h"
#include "tensor/float16.h"

namespace plumb::tensor::test {

inline constexpr DType kAllTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0,
                                      DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                                      DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

// Uniform in [-range, range).
inline float RandomFloat(base::Rng& rng, float range) {
  return static_cast<float>(2 * rng.Uniform() - 1) * range;
}

// Mixed magnitudes, as activations have: most small, a few large, some exactly zero.
inline std::vector<float> RandomFloats(base::Rng& rng, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) {
    const uint64_t kind = rng.Below(16);
    value = kind == 0 ? 0.0f : RandomFloat(rng, kind == 1 ? 40.0f : 2.0f);
  }
  return values;
}

inline void PutHalf(std::byte* p, float value) {
  const uint16_t half = FloatToHalf(value);
  std::memcpy(p, &half, 2);
}

// Bytes of a [rows, inputs] matrix as a file holds it: any quants, scales about 2^-7.
inline std::vector<std::byte> RandomMatrix(DType dtype, uint64_t rows, uint64_t inputs,
                                           base::Rng& rng) {
  const uint32_t block_bytes = Traits(dtype).block_bytes;
  std::vector<std::byte> bytes(MatrixBytes(dtype, rows, inputs).value());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Next());
  for (size_t at = 0; at < bytes.size(); at += block_bytes) {
    std::byte* block = bytes.data() + at;
    const float weight = RandomFloat(rng, 0.1f);
    switch (dtype) {
      case DType::kF32:
        std::memcpy(block, &weight, 4);
        break;
      case DType::kF16:
        PutHalf(block, weight);
        break;
      case DType::kBF16: {
        const auto high = static_cast<uint16_t>(std::bit_cast<uint32_t>(weight) >> 16);
        std::memcpy(block, &high, 2);
        break;
      }
      case DType::kQ6_K:
        PutHalf(block + 208, RandomFloat(rng, 0.0005f));
        break;
      case DType::kQ4_1:
      case DType::kQ5_1:
      case DType::kQ4_K:
      case DType::kQ5_K:
        PutHalf(block + 2, RandomFloat(rng, 0.01f));
        [[fallthrough]];
      default:
        PutHalf(block, RandomFloat(rng, 0.01f));
        break;
    }
  }
  return bytes;
}

// Where two float arrays first differ in bits, as text for a failure; empty when equal.
inline std::string FirstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return "sizes differ";
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i])) continue;
    return "[" + std::to_string(i) + "]: " + std::to_string(a[i]) + " and " + std::to_string(b[i]);
  }
  return "";
}

}  // namespace plumb::tensor::test
