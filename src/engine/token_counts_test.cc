// engine/token_counts_test.cc: adding and taking back, against a table that is made anew each time
// of what is left.
#include "engine/token_counts.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace plumb::engine {
namespace {

void ExpectEqual(const TokenCounts& a, const TokenCounts& b) {
  ASSERT_EQ(a.entries().size(), b.entries().size());
  for (size_t i = 0; i < a.entries().size(); ++i) {
    EXPECT_EQ(a.entries()[i].token, b.entries()[i].token);
    EXPECT_EQ(a.entries()[i].generated, b.entries()[i].generated);
  }
}

TEST(TokenCounts, WhatIsTakenBackIsAsIfItHadNeverBeen) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    base::Rng rng(seed);
    const uint64_t vocabulary = 2 + rng.Below(40);
    const auto random_token = [&] { return TokenId{static_cast<uint32_t>(rng.Below(vocabulary))}; };
    std::vector<TokenId> prompt(rng.Below(20)), generated;
    for (TokenId& token : prompt) token = random_token();
    TokenCounts counts;
    counts.Reset(static_cast<uint32_t>(vocabulary));
    for (const TokenId token : prompt) counts.AddPrompt(token);
    for (int turn = 0; turn < 60; ++turn) {
      for (uint64_t i = rng.Below(8); i > 0; --i) {
        generated.push_back(random_token());
        counts.AddGenerated(generated.back());
      }
      for (uint64_t i = rng.Below(8); i > 0 && !generated.empty(); --i) {
        counts.RemoveGenerated(generated.back());
        generated.pop_back();
      }
      TokenCounts expected;
      expected.Reset(static_cast<uint32_t>(vocabulary));
      for (const TokenId token : prompt) expected.AddPrompt(token);
      for (const TokenId token : generated) expected.AddGenerated(token);
      ASSERT_NO_FATAL_FAILURE(ExpectEqual(counts, expected)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace plumb::engine
