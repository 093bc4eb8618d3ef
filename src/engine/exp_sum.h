// engine/exp_sum.h
// exp over a whole vocabulary, the same bit for bit on every machine: element by element plain IEEE
// operations (never contracted), summed in 16 virtual lanes that are folded in a fixed tree. The
// compiler makes vectors of it, for AVX2 and AVX-512 where the machine has them; the result is the
// same, since no operation depends on the vectors' width.
#pragma once

#include <span>

namespace plumb::engine {

// exp(x) for x <= 0, relative error below 3e-7; x below -86 counts as -86 (4.5e-38).
// Method: 2^n * exp(r), degree-6 polynomial (coefficients of Cephes' expf, S. Moshier).
float ExpNegative(float x);

// The sum over logits of exp((logit - max) * scale), with max >= every logit and scale > 0. With
// `weights` (as long as logits), each term is also stored.
double ExpSum(std::span<const float> logits, float max, float scale, float* weights);

// How wide the compiler's vectors are; tests force each that the machine has.
enum class ExpTarget { kBaseline, kAvx2, kAvx512 };
bool HasExpTarget(ExpTarget target);
double ExpSumOn(ExpTarget target, std::span<const float> logits, float max, float scale,
                float* weights);

}  // namespace plumb::engine
