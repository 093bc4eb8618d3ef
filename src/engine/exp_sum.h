// engine/exp_sum.h
// exp over a whole vocabulary, the same bit for bit on every machine: element by element plain IEEE
// operations (never contracted), which the compiler turns into vectors for AVX2 and AVX-512 where
// the machine has them. No operation depends on the vectors' width. Read next: engine/sampler.h,
// which says what the weights are for.
#pragma once

#include <cstddef>

namespace plumb::engine {

// exp(x) for x <= 0, relative error below 3e-7; x below -86 counts as -86 (4.5e-38).
// Method: 2^n * exp(r), degree-6 polynomial (coefficients of Cephes' expf, S. Moshier).
float ExpNegative(float x);

// exp(x) rounded to a multiple of 2^-32, so that a sum in f64 of up to 2^20 weights is exact: it
// does not depend on the order, and a nucleus can be found without sorting. Below -22.9: 0.
float Weight(float x);

// The loops. Each sums f(logit - max) with max >= every logit; `max` and all logits finite.
struct ExpKernels {
  // ExpNegative(logit - max), in 16 virtual lanes that are folded in a fixed tree.
  double (*exp_sum)(const float* logits, size_t count, float max);
  // Weight((logit - max) * scale), scale > 0; each is also stored in `weights`, [count].
  double (*weight_sum)(const float* logits, size_t count, float max, float scale, float* weights);
};

enum class ExpTarget { kBaseline, kAvx2, kAvx512 };

// Null when this machine does not have the target; tests compare them all.
const ExpKernels* ExpKernelsFor(ExpTarget target);
// The widest that this machine has.
const ExpKernels& BestExpKernels();

}  // namespace plumb::engine
