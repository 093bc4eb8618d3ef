// base/random_test.cc: Philox against the published test vectors, and the seeded stream.
// A wrong constant or round would show in the first vector.
#include "base/random.h"

#include <gtest/gtest.h>

namespace plumb::base {
namespace {

// Vectors: Random123 1.09, kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, EqualsThePublishedVectors) {
  using Counter = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, RepeatsFromItsSeedAndStaysInRange) {
  Rng a(42), b(42), c(43);
  EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(a.Next(), c.Next());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(a.Below(7), 7u);
    const double u = a.Uniform();
    EXPECT_GE(u, 0.0);
    EXPECT_LT(u, 1.0);
  }
}

TEST(EntropySeed, DiffersBetweenCalls) { EXPECT_NE(EntropySeed(), EntropySeed()); }

}  // namespace
}  // namespace plumb::base
