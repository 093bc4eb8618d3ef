// tests/fuzz/cuts.h
// Ways to cut an input into the pieces in which a socket might give it: what a reader of bytes
// makes of them must not depend on the cuts. Drawn from the input itself, so that a replay cuts
// alike.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/random.h"

namespace plumb::fuzz {

using Pieces = std::vector<std::string_view>;  // borrowed of the input, none empty

inline Pieces ByteByByte(std::string_view input) {
  Pieces pieces;
  for (size_t at = 0; at < input.size(); ++at) pieces.push_back(input.substr(at, 1));
  return pieces;
}

inline Pieces CutAtRandom(std::string_view input, base::Rng& random) {
  constexpr uint64_t kCutsMax = 8;
  std::vector<size_t> places{0, input.size()};
  for (uint64_t left = 1 + random.Below(kCutsMax); left > 0; --left)
    places.push_back(random.Below(input.size() + 1));
  std::ranges::sort(places);
  Pieces pieces;
  for (size_t i = 1; i < places.size(); ++i) {
    const auto piece = input.substr(places[i - 1], places[i] - places[i - 1]);
    if (!piece.empty()) pieces.push_back(piece);
  }
  return pieces;
}

// Byte by byte, and some drawn ones.
inline std::vector<Pieces> CutsOf(std::string_view input) {
  constexpr int kDrawn = 4;
  base::Rng random(base::Blake3({std::as_bytes(std::span(input))}).prefix());
  std::vector<Pieces> cuts{ByteByByte(input)};
  for (int i = 0; i < kDrawn; ++i) cuts.push_back(CutAtRandom(input, random));
  return cuts;
}

}  // namespace plumb::fuzz
