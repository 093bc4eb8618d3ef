// tensor/exact_math_probe.h
// Notices another exp, log, sin, cos or pow than the one that the numerics id stands for: SLEEF is
// the system's library, and another version of it may round a result the other way. The results for
// some arguments are hashed into one number; tests compare them one by one
// (testdata/exact_math_bits.h). Read next: tensor/numerics.h, which acts on it.
#pragma once

#include <cstdint>

namespace plumb::tensor {

constexpr uint32_t kExactMathProbes = 200;

// By formula, exactly: over the range of each function, ends included.
struct ExactMathArguments {
  float exp;     // -104 ... 88: from where it vanishes to where it overflows
  float log;     // all positive exponents
  double angle;  // of sin and cos: 0 ... 2^21, as positions give
  double power;  // pow(10000, power): -1 ... 0
};
ExactMathArguments ExactMathArgumentsOf(uint32_t probe);  // < kExactMathProbes

// The bits of the results.
struct ExactMathBits {
  uint32_t exp, log;
  uint64_t sin, cos, pow;
  bool operator==(const ExactMathBits&) const = default;
};
ExactMathBits ExactMathBitsOf(uint32_t probe);

// Of the bits of all probes, in order. Needs FMA, as all of SLEEF's functions here do. Takes some
// tens of microseconds. Thread: any.
uint64_t ExactMathFingerprint();

}  // namespace plumb::tensor
