// base/share_test.cc
// What one gets alone, beside others, and that greed never takes the last.
#include "base/share.h"

#include <gtest/gtest.h>

#include <array>

namespace plumb::base {
namespace {

TEST(Share, IsHalfForWhoIsAlone) {
  EXPECT_TRUE(FitsShare({.max = 100, .all = 50, .own = 50}));
  EXPECT_FALSE(FitsShare({.max = 100, .all = 51, .own = 51}));
  EXPECT_TRUE(FitsAll({.max = 100, .all = 100, .own = 51}));
}

TEST(Share, NeverOverflows) {
  EXPECT_FALSE(FitsAll({.max = 100, .all = 101, .own = 0}));
  EXPECT_FALSE(FitsShare({.max = 100, .all = UINT64_MAX, .own = 0}));
  EXPECT_TRUE(FitsShare({.max = 0, .all = 0, .own = 0}));
}

// Each in turn takes all that it may, one by one: none starves, and some is left.
TEST(Share, GreedyOnesEndEqualAndLeaveAsMuch) {
  std::array<uint64_t, 4> own{};
  uint64_t all = 0;
  for (bool took = true; took;) {
    took = false;
    for (uint64_t& mine : own) {
      if (!FitsShare({.max = 1000, .all = all + 1, .own = mine + 1})) continue;
      ++mine;
      ++all;
      took = true;
    }
  }
  for (const uint64_t mine : own) EXPECT_EQ(mine, 200u);
  EXPECT_TRUE(FitsShare({.max = 1000, .all = all + 100, .own = 100})) << "a fifth that comes late";
}

TEST(Share, TheFirstToTakeAllThatItMayLeavesHalfToTheNext) {
  EXPECT_TRUE(FitsShare({.max = 100, .all = 50 + 25, .own = 25}));
  EXPECT_FALSE(FitsShare({.max = 100, .all = 50 + 26, .own = 26}));
}

}  // namespace
}  // namespace plumb::base
