// tensor/exact_math_probe_test.cc: the installed SLEEF gives the bits that the numerics id stands
// for. After a deliberate change of version: docs/numerics.md, "Another SLEEF".
#include "tensor/exact_math_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tensor/cpu_features.h"
#include "tensor/numerics.h"
#include "tensor/testdata/exact_math_bits.h"

namespace plumb::tensor {
namespace {

constexpr char kAdvice[] =
    "the installed SLEEF rounds otherwise than the one of this numerics id; see docs/numerics.md, "
    "\"Another SLEEF\"";

static_assert(std::size(kExactMathBits) == kExactMathProbes);

TEST(ExactMathProbe, GivesTheCommittedBits) {
  for (uint32_t probe = 0; probe < kExactMathProbes; ++probe) {
    const ExactMathBits& expected = kExactMathBits[probe];
    const ExactMathBits got = ExactMathBitsOf(probe);
    EXPECT_EQ(got.exp, expected.exp) << probe << ": " << kAdvice;
    EXPECT_EQ(got.log, expected.log) << probe << ": " << kAdvice;
    EXPECT_EQ(got.sin, expected.sin) << probe << ": " << kAdvice;
    EXPECT_EQ(got.cos, expected.cos) << probe << ": " << kAdvice;
    EXPECT_EQ(got.pow, expected.pow) << probe << ": " << kAdvice;
  }
  EXPECT_EQ(ExactMathFingerprint(), kExactMathFingerprint) << kAdvice;
}

// One unit in the last place of `exact` in a format of `digits` bits, subnormals included.
double Unit(double exact, int digits, int exponent_min) {
  const int exponent = exact == 0 ? exponent_min : std::ilogb(exact) - digits + 1;
  return std::ldexp(1.0, std::max(exponent, exponent_min));
}

// The table is not only what SLEEF once said, but what the functions are.
TEST(ExactMathProbe, TheCommittedBitsAreWithinOneUnitOfTheTruth) {
  for (uint32_t probe = 0; probe < kExactMathProbes; ++probe) {
    const ExactMathArguments at = ExactMathArgumentsOf(probe);
    const ExactMathBits& bits = kExactMathBits[probe];
    const double exp = std::exp(double{at.exp}), log = std::log(double{at.log});
    EXPECT_NEAR(std::bit_cast<float>(bits.exp), exp, Unit(exp, 24, -149)) << at.exp;
    EXPECT_NEAR(std::bit_cast<float>(bits.log), log, Unit(log, 24, -149)) << at.log;
    // long double as the truth of double
    const auto angle = static_cast<long double>(at.angle);
    const auto sin = static_cast<double>(std::sin(angle));
    const auto cos = static_cast<double>(std::cos(angle));
    const auto pow = static_cast<double>(std::pow(10000.0L, static_cast<long double>(at.power)));
    EXPECT_NEAR(std::bit_cast<double>(bits.sin), sin, Unit(sin, 53, -1074)) << at.angle;
    EXPECT_NEAR(std::bit_cast<double>(bits.cos), cos, Unit(cos, 53, -1074)) << at.angle;
    EXPECT_NEAR(std::bit_cast<double>(bits.pow), pow, Unit(pow, 53, -1074)) << at.power;
  }
}

TEST(NumericsOfProcess, SaysWhenTheBitsOfTheLibraryAreOthers) {
  EXPECT_EQ(NumericsWith("p2", kExactMathFingerprint), "p2");
  EXPECT_EQ(NumericsWith("p2", 0x12), "p2-m0000000000000012");
  if (!AllKernels().empty()) {
    EXPECT_EQ(NumericsOfProcess("p2"), NumericsWith("p2", ExactMathFingerprint()));
  }
}

}  // namespace
}  // namespace plumb::tensor
