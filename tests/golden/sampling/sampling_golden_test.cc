// tests/golden/sampling/sampling_golden_test.cc: the sampler gives the tokens of cases.txt, which
// generate.py computed from the definition alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/sampler.h"

namespace plumb::engine {
namespace {

// The rule of generate.py's logits_of.
std::vector<float> Logits(uint32_t count, uint64_t state, double spread) {
  std::vector<float> logits(count);
  for (float& logit : logits) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t high = state >> 48;
    logit = static_cast<float>(static_cast<double>(high * high >> 16) / 65536.0 * spread);
  }
  return logits;
}

std::vector<TokenId> ReadTokens(std::istream& in) {
  size_t count = 0;
  in >> count;
  std::vector<TokenId> tokens;
  for (uint32_t token = 0; count > 0 && in >> token; --count) tokens.push_back(TokenId{token});
  return tokens;
}

void CheckCase(const std::string& line) {
  SCOPED_TRACE(line);
  std::istringstream in(line);
  uint32_t vocabulary = 0;
  uint64_t logits_seed = 0;
  double spread = 0;
  SamplingParams params{.logprobs = true};
  NoiseKey key{};
  in >> vocabulary >> logits_seed >> spread >> key.seed >> key.sample_index >> key.position;
  in >> params.temperature >> params.top_p >> params.top_k >> params.min_p;
  in >> params.presence_penalty >> params.frequency_penalty >> params.repetition_penalty;
  const auto prompt = ReadTokens(in), generated = ReadTokens(in);
  size_t biases = 0;
  uint32_t token = 0;
  float number = 0;
  for (in >> biases; biases > 0 && in >> token >> number; --biases) {
    params.logit_bias.push_back({TokenId{token}, number});
  }
  in >> token >> number;
  ASSERT_TRUE(in) << "a malformed case";

  TokenCounts counts;
  counts.Reset(static_cast<uint32_t>(prompt.size() + generated.size()));
  for (const TokenId id : prompt) counts.AddPrompt(id);
  for (const TokenId id : generated) counts.AddGenerated(id);
  auto logits = Logits(vocabulary, logits_seed, spread);
  Sampler sampler(vocabulary, vocabulary);
  SampleResult result;
  sampler.Sample(logits, params, counts, key, result);
  ASSERT_TRUE(result.status.ok());
  EXPECT_EQ(base::Index(result.token), token);
  EXPECT_NEAR(result.logprob, number, 2e-6 + 2e-7 * std::abs(number));
}

TEST(SamplingGolden, GivesTheTokensOfTheIndependentImplementation) {
  std::ifstream file(PLUMB_CASES);
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    CheckCase(line);
    ++cases;
  }
  EXPECT_EQ(cases, 400);
}

}  // namespace
}  // namespace plumb::engine
