// model/families/numpy_integers.cc
// Three steps: the seed is hashed into a pool, the pool seeds a PCG64 generator, and its output is
// scaled into the range with rejection.
#include "model/families/numpy_integers.h"

#include <array>
#include <bit>

#include "base/check.h"

namespace plumb::model {
namespace {

using Wide = unsigned __int128;

constexpr size_t kPoolWords = 4;
using Pool = std::array<uint32_t, kPoolWords>;

// NumPy's SeedSequence. Each use of the hash changes its constant.
class SeedHash {
 public:
  SeedHash(uint32_t start, uint32_t factor) : constant_(start), factor_(factor) {}
  uint32_t operator()(uint32_t value) {
    value ^= constant_;
    constant_ *= factor_;
    value *= constant_;
    return value ^ value >> 16;
  }

 private:
  uint32_t constant_;
  const uint32_t factor_;
};

uint32_t Mix(uint32_t a, uint32_t b) {
  const uint32_t mixed = a * 0xca01f9ddu - b * 0x4973f715u;
  return mixed ^ mixed >> 16;
}

Pool PoolOf(uint64_t seed) {
  SeedHash hash(0x43b0d7e5u, 0x931e8875u);
  // The seed's words, low first, filled up with zeros: a leading zero word is no word, but zeros
  // are what the pool is filled up with.
  Pool pool = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0};
  for (uint32_t& word : pool) word = hash(word);
  for (size_t from = 0; from < kPoolWords; ++from) {
    for (size_t to = 0; to < kPoolWords; ++to) {
      if (from != to) pool[to] = Mix(pool[to], hash(pool[from]));
    }
  }
  return pool;
}

// PCG64, as NumPy seeds it.
class Pcg64 {
 public:
  explicit Pcg64(uint64_t seed) {
    const Pool pool = PoolOf(seed);
    SeedHash hash(0x8b51f9ddu, 0x58f38dedu);
    std::array<uint64_t, 4> words{};
    for (size_t i = 0; i < 2 * words.size(); ++i) {
      words[i / 2] |= uint64_t{hash(pool[i % kPoolWords])} << (32 * (i % 2));
    }
    const Wide start = Wide{words[0]} << 64 | words[1];
    const Wide sequence = Wide{words[2]} << 64 | words[3];
    increment_ = sequence << 1 | 1;
    Step();
    state_ += start;
    Step();
  }

  uint64_t Next() {
    Step();
    const auto folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
    return std::rotr(folded, static_cast<int>(state_ >> 122));
  }

 private:
  void Step() {
    constexpr Wide kFactor = Wide{0x2360ed051fc65da4u} << 64 | 0x4385df649fccf645u;
    state_ = state_ * kFactor + increment_;
  }

  Wide state_ = 0;
  Wide increment_ = 0;
};

}  // namespace

std::vector<uint64_t> NumpyIntegers(uint64_t seed, uint64_t bound, uint32_t count) {
  CHECK(bound > uint64_t{1} << 32) << bound;
  Pcg64 generator(seed);
  std::vector<uint64_t> integers(count);
  for (uint64_t& integer : integers) {
    Wide product = Wide{generator.Next()} * bound;
    // Low parts under the threshold would make some results likelier than others.
    const uint64_t threshold = (0 - bound) % bound;
    while (static_cast<uint64_t>(product) < threshold) product = Wide{generator.Next()} * bound;
    integer = static_cast<uint64_t>(product >> 64);
  }
  return integers;
}

}  // namespace plumb::model
