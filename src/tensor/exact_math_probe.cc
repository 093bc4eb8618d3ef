// tensor/exact_math_probe.cc: arguments spread over each range by exact arithmetic, and FNV-1a over
// the words of the results.
#include "tensor/exact_math_probe.h"

#include <bit>

#include "base/check.h"
#include "tensor/exact_math.h"

namespace plumb::tensor {

ExactMathArguments ExactMathArgumentsOf(uint32_t probe) {
  CHECK(probe < kExactMathProbes) << probe;
  constexpr uint32_t kLogStep = 0x7f7fffff / (kExactMathProbes - 1);
  const auto index = static_cast<double>(probe);
  return {.exp = static_cast<float>(index * (0x1.eep-1 + 0x1p-12)) - 104,
          .log = std::bit_cast<float>(1 + probe * kLogStep),
          .angle = index * index * index * 0x1.0a1p-2,
          .power = -index / 256};
}

ExactMathBits ExactMathBitsOf(uint32_t probe) {
  const ExactMathArguments at = ExactMathArgumentsOf(probe);
  return {.exp = std::bit_cast<uint32_t>(ExactExp(at.exp)),
          .log = std::bit_cast<uint32_t>(ExactLog(at.log)),
          .sin = std::bit_cast<uint64_t>(ExactSin(at.angle)),
          .cos = std::bit_cast<uint64_t>(ExactCos(at.angle)),
          .pow = std::bit_cast<uint64_t>(ExactPow(10000.0, at.power))};
}

uint64_t ExactMathFingerprint() {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint32_t probe = 0; probe < kExactMathProbes; ++probe) {
    const ExactMathBits bits = ExactMathBitsOf(probe);
    for (const uint64_t word :
         {uint64_t{bits.exp}, uint64_t{bits.log}, bits.sin, bits.cos, bits.pow}) {
      for (uint32_t shift = 0; shift < 64; shift += 8) {
        hash = (hash ^ (word >> shift & 0xff)) * 0x100000001b3;
      }
    }
  }
  return hash;
}

}  // namespace plumb::tensor
