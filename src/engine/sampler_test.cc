// engine/sampler_test.cc: the fast sampler equals the slow one, samples the distribution it should,
// and survives any logits.
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "engine/sampler_reference.h"

namespace plumb::engine {
namespace {

std::vector<float> RandomLogits(base::Rng& rng, uint32_t count, bool with_ties) {
  std::vector<float> logits(count);
  for (float& logit : logits) {
    // A few high, most low, as a model's are.
    const double value = -std::log(rng.Uniform() + 1e-12) * 3 - 10 * rng.Uniform();
    logit = static_cast<float>(with_ties ? std::round(value) : value);
  }
  return logits;
}

SamplingParams RandomParams(base::Rng& rng, uint32_t vocabulary_size) {
  const auto one_of = [&](std::initializer_list<double> values) {
    return static_cast<float>(values.begin()[rng.Below(values.size())]);
  };
  SamplingParams params;
  params.temperature = one_of({0, 0.1, 0.8, 1, 2});
  params.top_p = one_of({1, 1, 0.95, 0.5, 0.01});
  params.top_k = static_cast<uint32_t>(one_of({0, 0, 1, 5, 40, 100000}));
  params.min_p = one_of({0, 0, 0.05, 1});
  params.presence_penalty = one_of({0, 0, 1.5, -2});
  params.frequency_penalty = one_of({0, 0, 0.5, -1});
  params.repetition_penalty = one_of({1, 1, 1.3, 0.5});
  for (uint64_t bias = rng.Below(4); bias > 0; --bias) {
    params.logit_bias.push_back(
        {TokenId{static_cast<uint32_t>(rng.Below(vocabulary_size))}, one_of({-100, -2, 3, 100})});
  }
  params.seed = rng.Next();
  return params;
}

struct History {
  std::vector<TokenId> prompt, generated;
  TokenCounts counts;
};

History RandomHistory(base::Rng& rng, uint32_t vocabulary_size) {
  History history;
  history.counts.Reset(std::min(vocabulary_size, 60u));
  const auto token = [&] { return TokenId{static_cast<uint32_t>(rng.Below(vocabulary_size))}; };
  for (uint64_t i = rng.Below(30); i > 0; --i) {
    history.prompt.push_back(token());
    history.counts.AddPrompt(history.prompt.back());
  }
  for (uint64_t i = rng.Below(30); i > 0; --i) {
    history.generated.push_back(
        rng.Below(2) == 0 && !history.generated.empty() ? history.generated.back() : token());
    history.counts.AddGenerated(history.generated.back());
  }
  return history;
}

TEST(Sampler, EqualsTheSlowDefinition) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    base::Rng rng(seed);
    constexpr uint32_t kSizes[] = {1, 2, 127, 128, 129, 256, 1000, 3000};
    const uint32_t vocabulary_size = kSizes[rng.Below(std::size(kSizes))];
    const uint32_t candidates =
        rng.Below(3) > 0 ? vocabulary_size : static_cast<uint32_t>(1 + rng.Below(vocabulary_size));
    auto logits = RandomLogits(rng, vocabulary_size, rng.Below(3) == 0);
    const auto params = RandomParams(rng, vocabulary_size);
    const auto history = RandomHistory(rng, vocabulary_size);
    const NoiseKey key{params.seed, static_cast<uint32_t>(rng.Below(16)),
                       static_cast<uint32_t>(rng.Below(10000))};
    const auto before = logits;
    Sampler sampler(vocabulary_size, candidates);
    SampleResult result;
    sampler.Sample(logits, params, history.counts, key, result);
    ASSERT_TRUE(result.status.ok()) << "seed " << seed;
    ASSERT_EQ(base::Index(result.token),
              ReferenceSample(logits, candidates, params, history.prompt, history.generated, key))
        << "seed " << seed;
    ASSERT_EQ(logits, before) << "seed " << seed;
  }
}

TEST(Sampler, WithAMaskEqualsTheSlowDefinitionAmongWhatItAllows) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    base::Rng rng(seed);
    constexpr uint32_t kSizes[] = {1, 2, 31, 32, 33, 127, 128, 129, 1000, 3000};
    const uint32_t vocabulary_size = kSizes[rng.Below(std::size(kSizes))];
    const uint32_t candidates =
        rng.Below(3) > 0 ? vocabulary_size : static_cast<uint32_t>(1 + rng.Below(vocabulary_size));
    auto logits = RandomLogits(rng, vocabulary_size, rng.Below(3) == 0);
    const auto params = RandomParams(rng, vocabulary_size);
    const auto history = RandomHistory(rng, vocabulary_size);
    const NoiseKey key{params.seed, 0, static_cast<uint32_t>(rng.Below(10000))};
    std::vector<uint32_t> mask((vocabulary_size + 31) / 32);
    // From a single token to all but one in a hundred.
    const uint64_t allowed_of_hundred = rng.Below(3) == 0 ? 0 : rng.Below(100);
    for (uint32_t token = 0; token < vocabulary_size; ++token) {
      if (rng.Below(100) < allowed_of_hundred) mask[token / 32] |= 1u << (token % 32);
    }
    const auto sure = static_cast<uint32_t>(rng.Below(candidates));
    mask[sure / 32] |= 1u << (sure % 32);
    const auto before = logits;
    Sampler sampler(vocabulary_size, candidates);
    SampleResult result;
    sampler.Sample(logits, params, history.counts, key, result, mask);
    ASSERT_TRUE(result.status.ok()) << "seed " << seed;
    ASSERT_EQ(base::Index(result.token), ReferenceSample(logits, candidates, params, history.prompt,
                                                         history.generated, key, mask))
        << "seed " << seed;
    ASSERT_EQ(logits, before) << "seed " << seed;
  }
}

TEST(Sampler, WithoutWhatIsNeverSampledEqualsTheSlowDefinition) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    base::Rng rng(seed);
    constexpr uint32_t kSizes[] = {2, 33, 128, 129, 1000, 3000};
    const uint32_t vocabulary_size = kSizes[rng.Below(std::size(kSizes))];
    auto logits = RandomLogits(rng, vocabulary_size, rng.Below(3) == 0);
    auto params = RandomParams(rng, vocabulary_size);
    params.logprobs = rng.Below(2) == 0;
    if (params.logprobs) params.top_logprobs = static_cast<uint32_t>(rng.Below(6));
    const auto history = RandomHistory(rng, vocabulary_size);
    const NoiseKey key{params.seed, 0, static_cast<uint32_t>(rng.Below(10000))};
    // The likeliest of all, and another.
    const auto top = static_cast<uint32_t>(std::ranges::max_element(logits) - logits.begin());
    std::vector<TokenId> never{TokenId{top}};
    const auto other = static_cast<uint32_t>(rng.Below(vocabulary_size));
    if (other != top && vocabulary_size > 2) never.push_back(TokenId{other});
    params.logit_bias.push_back({TokenId{top}, 50.0f});
    // Half of the time a mask that allows it, too.
    std::vector<uint32_t> mask;
    if (rng.Below(2) == 0) mask.assign((vocabulary_size + 31) / 32, ~0u);
    const auto before = logits;
    Sampler sampler(vocabulary_size, vocabulary_size, never);
    SampleResult result;
    sampler.Sample(logits, params, history.counts, key, result, mask);
    ASSERT_TRUE(result.status.ok()) << "seed " << seed;
    ASSERT_EQ(base::Index(result.token),
              ReferenceSample(logits, vocabulary_size, params, history.prompt, history.generated,
                              key, mask, never))
        << "seed " << seed;
    ASSERT_EQ(logits, before) << "seed " << seed;
    if (!params.logprobs) continue;
    // The others' log-probabilities do not depend on it, and it is no alternative.
    SampleResult described;
    Sampler(vocabulary_size, vocabulary_size).Describe(logits, result.token, 0, described);
    EXPECT_EQ(result.logprob, described.logprob) << "seed " << seed;
    const auto order = ReferenceOrder(logits, vocabulary_size, {}, {}, {}, {}, never);
    ASSERT_EQ(result.top_count, std::min<size_t>(params.top_logprobs, order.size()));
    for (uint32_t i = 0; i < result.top_count; ++i) {
      EXPECT_EQ(base::Index(result.top[i].token), order[i].token) << "seed " << seed;
    }
  }
}

TEST(Sampler, AMaskThatAllowsOnlyWhatIsNeverSampledAllowsNothing) {
  std::vector<float> logits(100, 1.0f);
  const auto before = logits;
  const std::vector<TokenId> never{TokenId{7}};
  Sampler sampler(100, 100, never);
  std::vector<uint32_t> mask(4);
  mask[0] = 1u << 7;
  SampleResult result;
  sampler.Sample(logits, {}, TokenCounts(), {}, result, mask);
  EXPECT_EQ(result.status.code(), base::Code::kUnsupported);
  EXPECT_EQ(logits, before);
  // In a prompt it may stand, and has the log-probability that the model gives it.
  sampler.Describe(logits, TokenId{7}, 3, result);
  ASSERT_TRUE(result.status.ok());
  EXPECT_NEAR(result.logprob, -std::log(100.0), 1e-6);
  EXPECT_EQ(result.top_count, 3u);
  EXPECT_EQ(logits, before);
}

TEST(Sampler, KnowsWhetherSomethingIsLeft) {
  const std::vector<TokenId> never{TokenId{0}, TokenId{5}};
  EXPECT_FALSE(Sampler::CanSample(0, {}));
  EXPECT_FALSE(Sampler::CanSample(1, never));
  EXPECT_TRUE(Sampler::CanSample(2, never)) << "the other is beyond";
}

TEST(Sampler, AMaskThatAllowsEverythingOrDescribesNothingChangesNoLogprob) {
  base::Rng rng(4);
  auto logits = RandomLogits(rng, 500, false);
  SamplingParams params{.temperature = 0, .logprobs = true, .top_logprobs = 5};
  Sampler sampler(500, 490);
  SampleResult free, all, one;
  sampler.Sample(logits, params, {}, {}, free);
  sampler.Sample(logits, params, {}, {}, all, std::vector<uint32_t>(16, ~0u));
  EXPECT_EQ(all.token, free.token);
  EXPECT_EQ(all.logprob, free.logprob);
  // A token that is forced has the log-probability that it has anyhow.
  std::vector<uint32_t> mask(16);
  mask[7] = 1u << 3;
  sampler.Sample(logits, params, {}, {}, one, mask);
  EXPECT_EQ(one.token, TokenId{7 * 32 + 3});
  EXPECT_NEAR(one.logprob - free.logprob,
              logits[base::Index(one.token)] - logits[base::Index(free.token)], 1e-4);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(one.top[i].token, free.top[i].token);
  SampleResult described;
  sampler.Describe(logits, one.token, 5, described);
  EXPECT_EQ(described.token, one.token);
  EXPECT_EQ(described.logprob, one.logprob);
  EXPECT_EQ(described.top[4].logprob, one.top[4].logprob);
}

TEST(Sampler, AMaskWithoutACandidateIsAnError) {
  std::vector<float> logits(100, 1.0f);
  Sampler sampler(100, 90);
  SampleResult result;
  std::vector<uint32_t> mask(4);
  mask[2] = 1u << 31;  // token 95: padding
  sampler.Sample(logits, {}, {}, {}, result, mask);
  EXPECT_EQ(result.status.code(), base::Code::kUnsupported);
}

// The share of each token over many positions, against softmax over what the filters keep:
// Pearson's chi-square. The limit is its 0.1 % quantile by Wilson and Hilferty (1931); seeds are
// fixed.
void ExpectDistribution(const SamplingParams& params, std::vector<float> logits) {
  const uint32_t size = static_cast<uint32_t>(logits.size());
  Sampler sampler(size, size);
  SampleResult result;
  constexpr uint32_t kDraws = 60000;
  std::vector<uint32_t> seen(size);
  for (uint32_t position = 0; position < kDraws; ++position) {
    sampler.Sample(logits, params, {}, {params.seed, 0, position}, result);
    ++seen[base::Index(result.token)];
  }
  const auto order = ReferenceOrder(logits, size, params, {}, {});
  std::vector<double> weights(size);
  double total = 0, kept_total = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (params.top_k > 0 && i >= params.top_k) break;
    weights[i] = std::exp((order[i].logit - order[0].logit) / params.temperature);
    total += weights[i];
  }
  double chi_square = 0, degrees = -1, sum = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (sum >= params.top_p * total || weights[i] < params.min_p) weights[i] = 0;
    sum += weights[i];
    kept_total += weights[i];
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const double expected = kDraws * weights[i] / kept_total;
    const double count = seen[order[i].token];
    if (expected == 0) {
      EXPECT_EQ(count, 0) << order[i].token;
      continue;
    }
    ASSERT_GT(expected, 5) << "too rare for the test";
    chi_square += (count - expected) * (count - expected) / expected;
    ++degrees;
  }
  const double spread = std::sqrt(2 / (9 * degrees));
  const double limit = degrees * std::pow(1 - 2 / (9 * degrees) + 3.0902 * spread, 3);
  EXPECT_LT(chi_square, limit) << degrees << " degrees of freedom";
}

std::vector<float> SpreadLogits() {
  std::vector<float> logits(300);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 37) % 300) / 75.0f;  // 0 to 4, shuffled over three blocks
  }
  return logits;
}

TEST(Sampler, FrequenciesAreTheSoftmax) {
  ExpectDistribution({.temperature = 1.0f, .seed = 11}, SpreadLogits());
  ExpectDistribution({.temperature = 1.7f, .seed = 12}, SpreadLogits());
}

TEST(Sampler, FrequenciesAreTheFilteredSoftmax) {
  ExpectDistribution({.temperature = 1.0f, .top_k = 20, .seed = 13}, SpreadLogits());
  ExpectDistribution({.temperature = 0.7f, .top_p = 0.6f, .seed = 14}, SpreadLogits());
  ExpectDistribution({.temperature = 1.0f, .min_p = 0.3f, .seed = 15}, SpreadLogits());
  ExpectDistribution({.temperature = 1.3f, .top_p = 0.9f, .top_k = 50, .min_p = 0.1f, .seed = 16},
                     SpreadLogits());
}

TEST(Sampler, FrequenciesFollowTheBias) {
  SamplingParams params{.temperature = 1.0f, .seed = 17};
  params.logit_bias = {{TokenId{0}, 5.0f}, {TokenId{299}, 4.5f}};
  ExpectDistribution(params, SpreadLogits());
}

class OneSample : public testing::Test {
 protected:
  SampleResult Run(std::vector<float> logits, const SamplingParams& params,
                   uint32_t candidates = 0) {
    const uint32_t size = static_cast<uint32_t>(logits.size());
    Sampler sampler(size, candidates == 0 ? size : candidates);
    SampleResult result;
    sampler.Sample(logits, params, {}, {params.seed, 0, 0}, result);
    return result;
  }
};

TEST_F(OneSample, GreedyTakesTheLowestIdOfATie) {
  EXPECT_EQ(Run({1, 3, 2, 3}, {.temperature = 0}).token, TokenId{1});
}

TEST_F(OneSample, PaddingIsNeverSampledAndStillCounts) {
  const auto result =
      Run({1, 2, 100, 100}, {.temperature = 0, .logprobs = true, .top_logprobs = 4}, 2);
  EXPECT_EQ(result.token, TokenId{1});
  EXPECT_EQ(result.top_count, 2u);
  EXPECT_NEAR(result.logprob, 2 - 100 - std::log(2.0), 1e-5);
}

TEST_F(OneSample, LogprobsAreOfTheRawLogits) {
  SamplingParams params{.temperature = 0.3f, .seed = 4, .logprobs = true, .top_logprobs = 3};
  params.logit_bias = {{TokenId{2}, 100.0f}};
  const std::vector<float> logits = {0.5f, 2.0f, -1.0f, 2.0f, 1.5f};
  const auto result = Run(logits, params);
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit});
  EXPECT_EQ(result.token, TokenId{2});
  EXPECT_NEAR(result.logprob, -1.0 - std::log(total), 1e-6);
  ASSERT_EQ(result.top_count, 3u);
  const uint32_t expected[] = {1, 3, 4};
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.top[i].token, TokenId{expected[i]});
    EXPECT_NEAR(result.top[i].logprob, logits[expected[i]] - std::log(total), 1e-6);
  }
}

TEST_F(OneSample, LogprobsOfABigVocabularyAreCloseToExact) {
  base::Rng rng(21);
  const auto logits = RandomLogits(rng, 49152, false);
  const auto result = Run(logits, {.temperature = 1, .seed = 5, .logprobs = true});
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit});
  EXPECT_NEAR(result.logprob, logits[base::Index(result.token)] - std::log(total), 2e-6);
}

TEST_F(OneSample, LogitsThatAreNotFiniteAreAnError) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF, -HUGE_VALF}) {
    for (const size_t place : {0, 5, 127, 128, 299}) {
      std::vector<float> logits(300, 1.0f);
      logits[place] = bad;
      for (const float temperature : {0.0f, 1.0f}) {
        const auto result = Run(logits, {.temperature = temperature}, 200);
        EXPECT_EQ(result.status.code(), base::Code::kInternal) << bad << " at " << place;
      }
    }
  }
}

TEST_F(OneSample, ExtremesGiveATokenOfTheVocabulary) {
  const float huge = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const auto& logits :
       {std::vector<float>{huge, -huge, huge}, std::vector<float>{-huge, -huge, -huge},
        std::vector<float>{0, 0, tiny}}) {
    for (const float temperature : {0.0f, tiny, 1e-20f, 2.0f}) {
      for (const float top_p : {tiny, 0.5f, 1.0f}) {
        for (const float min_p : {0.0f, tiny, 1.0f}) {
          SamplingParams params{.temperature = temperature, .top_p = top_p, .min_p = min_p};
          params.logit_bias = {{TokenId{1}, 100.0f}};
          params.logprobs = true;
          const auto result = Run(logits, params);
          ASSERT_TRUE(result.status.ok());
          ASSERT_LT(base::Index(result.token), 3u);
          ASSERT_FALSE(std::isnan(result.logprob));
        }
      }
    }
  }
}

TEST(SamplerPenalties, ExtremePenaltiesKeepLogitsFinite) {
  TokenCounts counts;
  counts.Reset(2);
  counts.AddGenerated(TokenId{0});
  std::vector<float> logits = {std::numeric_limits<float>::max(), 1.0f};
  SamplingParams params{.temperature = 0, .repetition_penalty = 1e-38f};
  Sampler sampler(2, 2);
  SampleResult result;
  sampler.Sample(logits, params, counts, {}, result);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.token, TokenId{0});
}

TEST(SamplerPenalties, PresenceAndFrequencyIgnoreThePrompt) {
  TokenCounts counts;
  counts.Reset(3);
  counts.AddPrompt(TokenId{0});
  counts.AddGenerated(TokenId{1});
  std::vector<float> logits = {2.0f, 2.5f, 1.9f};
  Sampler sampler(3, 3);
  SampleResult result;
  sampler.Sample(logits, {.temperature = 0, .presence_penalty = 1.0f}, counts, {}, result);
  EXPECT_EQ(result.token, TokenId{0});
  sampler.Sample(logits, {.temperature = 0, .repetition_penalty = 2.0f}, counts, {}, result);
  EXPECT_EQ(result.token, TokenId{2});
}

TEST(SamplerNoise, SampleIndexAndSeedGiveOtherTokens) {
  std::vector<float> logits(1000, 0.0f);
  Sampler sampler(1000, 1000);
  SampleResult first, other;
  int same = 0;
  for (uint32_t position = 0; position < 100; ++position) {
    sampler.Sample(logits, {}, {}, {1, 0, position}, first);
    sampler.Sample(logits, {}, {}, {1, 1, position}, other);
    same += first.token == other.token;
    sampler.Sample(logits, {}, {}, {2, 0, position}, other);
    same += first.token == other.token;
  }
  EXPECT_LE(same, 3);  // 0.2 expected
}

TEST(TokenCounts, CountsEachTokenOnce) {
  TokenCounts counts;
  counts.Reset(500);
  for (int round = 0; round < 3; ++round) {
    for (uint32_t token = 0; token < 500; ++token) {
      if (token % 2 == 0) counts.AddPrompt(TokenId{token * 4096});
      if (token % 3 == 0 || token % 2 == 1) counts.AddGenerated(TokenId{token * 4096});
    }
  }
  ASSERT_EQ(counts.entries().size(), 500u);
  for (uint32_t token = 0; token < 500; ++token) {
    const auto& entry = counts.entries()[token];
    EXPECT_EQ(entry.token, TokenId{token * 4096});
    EXPECT_EQ(entry.generated, token % 3 == 0 || token % 2 == 1 ? 3u : 0u);
  }
}

}  // namespace
}  // namespace plumb::engine
