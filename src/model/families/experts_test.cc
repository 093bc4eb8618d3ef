// model/families/experts_test.cc: which experts a row chooses, and with what weights. What the
// layer then computes: architecture_test.cc and exactness_test.cc.
#include "model/families/experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace plumb::model {
namespace {

using testing::ElementsAre;

std::vector<uint32_t> Indexes(const std::vector<Choice>& choices) {
  std::vector<uint32_t> indexes;
  for (const Choice& choice : choices) indexes.push_back(choice.expert);
  return indexes;
}

std::vector<Choice> Choose(const std::vector<float>& probabilities, size_t used, bool normalise) {
  std::vector<Choice> choices(used);
  ChooseExperts(probabilities, normalise, choices);
  return choices;
}

TEST(ChooseExperts, TakesTheLargestInOrderOfIndex) {
  const auto choices = Choose({0.1f, 0.4f, 0.05f, 0.25f, 0.2f}, 3, false);
  EXPECT_THAT(Indexes(choices), ElementsAre(1, 3, 4));
  EXPECT_EQ(choices[0].weight, 0.4f);
  EXPECT_EQ(choices[2].weight, 0.2f);
}

TEST(ChooseExperts, PrefersTheLowerIndexOfEqualOnes) {
  EXPECT_THAT(Indexes(Choose({0.2f, 0.2f, 0.2f, 0.2f, 0.2f}, 2, false)), ElementsAre(0, 1));
  EXPECT_THAT(Indexes(Choose({0.1f, 0.3f, 0.1f, 0.3f, 0.3f}, 2, false)), ElementsAre(1, 3));
  EXPECT_THAT(Indexes(Choose({0.1f, 0.1f, 0.3f, 0.1f}, 2, false)), ElementsAre(0, 2));
}

TEST(ChooseExperts, NormalisesByTheSumInOrderOfIndex) {
  const auto choices = Choose({0.3f, 0.1f, 0.6f}, 2, true);
  EXPECT_EQ(choices[0].weight, 0.3f / (0.3f + 0.6f));
  EXPECT_EQ(choices[1].weight, 0.6f / (0.3f + 0.6f));
}

TEST(ChooseExperts, AgreesWithASortOfAll) {
  base::Rng rng(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> p(1 + rng.Below(40));
    for (float& value : p) value = static_cast<float>(rng.Below(8)) / 8;  // many ties
    const size_t used = 1 + rng.Below(p.size());
    std::vector<uint32_t> order(p.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return p[a] > p[b]; });
    order.resize(used);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(Indexes(Choose(p, used, false)), order);
  }
}

TEST(ChooseExperts, StaysWithinTheExpertsForNaN) {
  const float nan = std::nanf("");
  for (const std::vector<float>& p :
       {std::vector<float>{nan, nan, nan, nan}, {0.5f, nan, 0.25f, nan}, {nan, nan, 1, 0.5f}}) {
    std::vector<uint32_t> indexes = Indexes(Choose(p, 3, true));
    EXPECT_TRUE(std::is_sorted(indexes.begin(), indexes.end()));
    EXPECT_EQ(std::adjacent_find(indexes.begin(), indexes.end()), indexes.end());
    EXPECT_LT(indexes.back(), 4u);
  }
}

}  // namespace
}  // namespace plumb::model
