// model/families/deepseek_experts_test.cc: which experts a row chooses, with what weights, and the
// score. What the layer then computes: tests/golden/v41.
#include "model/families/deepseek_experts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plumb::model {
namespace {

std::vector<DeepseekExpertChoice> Choose(const std::vector<float>& scores,
                                         const std::vector<float>& bias, size_t used,
                                         float scale = 1) {
  std::vector<DeepseekExpertChoice> choices(used);
  ChooseDeepseekExperts(scores, bias, scale, choices);
  return choices;
}

TEST(ExpertScore, IsTheRootOfSoftplusWithoutLosingSmallOnes) {
  for (const float x :
       {-80.0f, -30.0f, -17.0f, -5.0f, -1.0f, 0.0f, 0.3f, 2.0f, 19.0f, 25.0f, 300.0f}) {
    const double truth = x > 20 ? double{x} : std::log1p(std::exp(double{x}));
    EXPECT_NEAR(ExpertScore(x) / std::sqrt(truth), 1, 3e-7) << x;
  }
  EXPECT_EQ(ExpertScore(-std::numeric_limits<float>::infinity()), 0.0f);
}

TEST(ChooseDeepseekExperts, BiasChoosesAndDoesNotWeigh) {
  const auto choices = Choose({1.0f, 2.0f, 3.0f, 0.5f}, {0, 0, -5, 4}, 2, 1.5f);
  EXPECT_EQ(choices[0].expert, 1u);
  EXPECT_EQ(choices[1].expert, 3u);
  EXPECT_FLOAT_EQ(choices[0].weight, 2.0f / 2.5f * 1.5f);
  EXPECT_FLOAT_EQ(choices[1].weight, 0.5f / 2.5f * 1.5f);
}

TEST(ChooseDeepseekExperts, PrefersTheLowerIndexOfEqualOnes) {
  const auto choices = Choose({2, 1, 2, 2, 1}, {0, 0, 0, 0, 0}, 2);
  EXPECT_EQ(choices[0].expert, 0u);
  EXPECT_EQ(choices[1].expert, 2u);
}

TEST(ChooseDeepseekExperts, TakesNanLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto choices = Choose({nan, 1, nan, 0.1f}, {0, 0, 0, 0}, 2);
  EXPECT_EQ(choices[0].expert, 1u);
  EXPECT_EQ(choices[1].expert, 3u);
  EXPECT_EQ(Choose({nan, nan}, {0, 0}, 2)[1].expert, 1u);
}

TEST(ChooseDeepseekExperts, ManyAgainstSorting) {
  std::vector<float> scores(384), bias(384);
  for (uint32_t i = 0; i < 384; ++i) {
    scores[i] = static_cast<float>((i * 7919) % 997) / 997;
    bias[i] = static_cast<float>((i * 31) % 13) / 40;
  }
  const auto choices = Choose(scores, bias, 6);
  for (const auto& choice : choices) {
    uint32_t better = 0;
    for (uint32_t i = 0; i < 384; ++i) {
      const float mine = scores[choice.expert] + bias[choice.expert];
      const float other = scores[i] + bias[i];
      better += other > mine || (other == mine && i < choice.expert) ? 1 : 0;
    }
    EXPECT_LT(better, 6u);
  }
  for (size_t i = 1; i < choices.size(); ++i) {
    EXPECT_LT(choices[i - 1].expert, choices[i].expert);
  }
}

}  // namespace
}  // namespace plumb::model
