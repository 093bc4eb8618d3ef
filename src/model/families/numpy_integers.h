// model/families/numpy_integers.h
// The integers that NumPy draws for a seed, since a checkpoint's hash multipliers are defined by
// them and not stored: numpy.random.default_rng(seed).integers(0, bound, size=count), 64-bit.
// Sources: NumPy 2 (random/bit_generator.pyx, src/pcg64, src/distributions); O'Neill, "PCG",
// HMC-CS-2014-0905 (XSL-RR 128/64); Lemire, "Fast Random Integer Generation in an Interval".
#pragma once

#include <cstdint>
#include <vector>

namespace plumb::model {

// Each in [0, bound). bound > 2^32 (CHECK): below, NumPy draws by halves of 64 bits.
std::vector<uint64_t> NumpyIntegers(uint64_t seed, uint64_t bound, uint32_t count);

}  // namespace plumb::model
