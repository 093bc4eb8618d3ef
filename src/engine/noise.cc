// engine/noise.cc: Philox words to exponential times. The logarithm is the one of SLEEF that is the
// same on every machine (cinz: no fused operations).
#include "engine/noise.h"

#include <sleef.h>

#include <array>

#include "base/random.h"

namespace plumb::engine {
namespace {

enum Domain : uint32_t { kBlockDomain = 0, kTokenDomain = 1 };

std::array<uint32_t, 4> Draw(const NoiseKey& key, uint32_t index, Domain domain) {
  return base::Philox4x32({index, key.position, key.sample_index, domain},
                          {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
}

// Standard exponential, from 52 bits in the middle of their interval: neither 0 nor infinite.
double ExponentialTime(const std::array<uint32_t, 4>& words) {
  const uint64_t bits = (uint64_t{words[1]} << 32 | words[0]) >> 12;
  const double uniform = (static_cast<double>(bits) + 0.5) * 0x1.0p-52;
  return -Sleef_cinz_logd1_u10purec(uniform);
}

}  // namespace

BlockNoise DrawBlock(const NoiseKey& key, uint32_t block) {
  const auto words = Draw(key, block, kBlockDomain);
  return {.time = ExponentialTime(words) / kNoiseBlock,
          .first_token = block * kNoiseBlock + words[2] % kNoiseBlock};
}

double DrawToken(const NoiseKey& key, const BlockNoise& block, uint32_t token) {
  if (token == block.first_token) return block.time;
  return block.time + ExponentialTime(Draw(key, token, kTokenDomain));
}

double Gumbel(double time) { return -Sleef_cinz_logd1_u10purec(time); }

}  // namespace plumb::engine
