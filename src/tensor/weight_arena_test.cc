// tensor/weight_arena_test.cc: pieces are aligned, zero and apart, whatever their sizes.
// The largest piece is larger than a chunk.
#include "tensor/weight_arena.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plumb::tensor {
namespace {

TEST(WeightArena, PiecesAreAlignedZeroAndApart) {
  WeightArena arena;
  struct Piece {
    std::byte* data;
    uint64_t size;
  };
  std::vector<Piece> pieces;
  for (const uint64_t size : {1u, 64u, 65u, 1u << 20, 15u << 20, 1u << 20, 40u << 20, 7u, 0u}) {
    const auto data = arena.Allocate(size);
    ASSERT_TRUE(data.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*data) % 64, 0u);
    EXPECT_TRUE(std::all_of(*data, *data + size, [](std::byte b) { return b == std::byte{0}; }));
    std::fill(*data, *data + size, static_cast<std::byte>(pieces.size() + 1));
    pieces.push_back({*data, size});
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [data, size] = pieces[i];
    const auto mark = static_cast<std::byte>(i + 1);
    EXPECT_TRUE(std::all_of(data, data + size, [&](std::byte b) { return b == mark; })) << i;
  }
}

TEST(WeightArena, TooMuchMemoryIsRefusedAndTheArenaLives) {
  WeightArena arena;
  ASSERT_TRUE(arena.Allocate(100).ok());
  for (const uint64_t size : {uint64_t{1} << 60, UINT64_MAX}) {
    EXPECT_EQ(arena.Allocate(size).status().code(), base::Code::kOverloaded);
  }
  EXPECT_TRUE(arena.Allocate(100).ok());
}

}  // namespace
}  // namespace plumb::tensor
