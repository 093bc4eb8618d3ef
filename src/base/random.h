// base/random.h
// Randomness in two forms. Philox: a pure function of a key and a counter, for sampling noise that
// must not depend on what else runs (DESIGN, "Sampling"). Rng: a small seeded stream for tests,
// workloads and simulations. EntropySeed asks the operating system, once, for a missing seed.
#pragma once

#include <array>
#include <cstdint>

namespace plumb::base {

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC11).
// Thread: any; pure.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// SplitMix64 (Steele, Lea, Flood 2014). A value type; one thread at a time.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // Uniform in [0, bound); bound > 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

// 64 bits from the operating system. Only for seeds that are then reported to the caller, and keys.
uint64_t EntropySeed();

}  // namespace plumb::base
