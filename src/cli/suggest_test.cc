// cli/suggest_test.cc
// Distances known by hand, and when a suggestion is made.
#include "cli/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace plumb::cli {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("port", "port"), 0u);
  EXPECT_EQ(EditDistance("", "port"), 4u);
  EXPECT_EQ(EditDistance("prot", "port"), 1u);
  EXPECT_EQ(EditDistance("pot", "port"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(EditDistance, CutsLongTexts) {
  EXPECT_EQ(EditDistance(std::string(1000, 'a'), std::string(1000, 'b')), 64u);
}

TEST(DidYouMean, NamesTheNearest) {
  const std::vector<std::string> known = {"host", "port", "threads"};
  EXPECT_EQ(DidYouMean("prot", known), "; did you mean 'port'?");
  EXPECT_EQ(DidYouMean("thread", known), "; did you mean 'threads'?");
}

TEST(DidYouMean, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string> known = {"host", "port"};
  EXPECT_EQ(DidYouMean("temperature", known), "");
  EXPECT_EQ(DidYouMean("x", std::vector<std::string>{}), "");
}

TEST(DidYouMean, PrefersTheEarlierOfEquallyNear) {
  EXPECT_EQ(DidYouMean("cost", std::vector<std::string>{"host", "post"}), "; did you mean 'host'?");
}

}  // namespace
}  // namespace plumb::cli
