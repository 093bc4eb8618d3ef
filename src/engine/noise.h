// engine/noise.h
// The randomness of sampling: noise for a token as a pure function of (seed, sample index,
// position, token), so that an answer does not depend on what else is drawn (DESIGN, "Sampling").
// Adding independent standard Gumbel noise to logits and taking the largest samples their softmax
// (Gumbel 1954; Maddison, Tarlow, Minka: "A* sampling", 2014).
#pragma once

#include <cstdint>

namespace plumb::engine {

// Gumbel noise is -log of a standard exponential time. Times are drawn by blocks: the earliest of
// kNoiseBlock independent times is exponential with that rate, falls on each token of the block
// alike, and the others follow it by standard exponential times of their own (an exponential has no
// memory). So each token's time is independent and standard exponential, and one draw bounds a
// whole block: the sampler skips blocks that cannot win without drawing their tokens.
constexpr uint32_t kNoiseBlock = 128;  // tokens; a power of two

struct NoiseKey {
  uint64_t seed;
  uint32_t sample_index;
  uint32_t position;  // of the token to be sampled, counted from the start of the prompt
};

struct BlockNoise {
  double time;           // the earliest time in the block; > 0
  uint32_t first_token;  // whose time it is; may lie past the end of the vocabulary
};

// Thread: any; pure. Philox counter {index, position, sample index, domain}, key = seed; domain 0:
// words 0 and 1 give the time, word 2 the token; domain 1 (of a token): words 0 and 1.
BlockNoise DrawBlock(const NoiseKey& key, uint32_t block);
// The time of `token`, which lies in `block`: never before block.time.
double DrawToken(const NoiseKey& key, const BlockNoise& block, uint32_t token);
// -log(time), the same on every machine.
double Gumbel(double time);

}  // namespace plumb::engine
