// model/families/deepseek_engram_test.cc
// The rows of a token are the same whether it is in the step, comes after it, or the tokens before
// it were in earlier steps.
#include "model/families/deepseek_engram.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "model/families/deepseek_v41_tiny.h"

namespace plumb::model {
namespace {

TEST(DeepseekEngram, RowsOfATokenAreTheSameAheadOfItsStepAndInIt) {
  DeepseekTinySpec spec;
  spec.engram_ngram_max = 4;
  const DeepseekTiny tiny = MakeDeepseekTiny(spec);
  const DeepseekConfig config = *ReadDeepseekConfig(tiny.config.dump(), "");
  const auto addresses = *EngramAddresses::Create(config, tiny.token_map);
  const DeepseekRoundings roundings;
  const DeepseekLayout layout(config, roundings, /*backtrack_rows=*/6);
  const auto engram = *DeepseekEngram::Create(config, roundings, layout, addresses, 64);
  const uint32_t per_token = addresses.rows_per_token();

  const uint64_t seed = 20261130;
  base::Rng rng(seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<TokenId> tokens(1 + rng.Below(40));
    for (TokenId& token : tokens)
      token = TokenId{static_cast<uint32_t>(rng.Below(config.vocabulary))};
    std::vector<std::byte> state(layout.state_bytes(), std::byte{0xff});
    for (size_t done = 0; done < tokens.size();) {
      const size_t count = 1 + rng.Below(tokens.size() - done);
      const SequenceRows sequence = {
          .tokens = std::span(tokens).subspan(done, count),
          .position = static_cast<uint32_t>(done),
          .state = state.data(),
          .upcoming =
              std::span(tokens).subspan(done + count, rng.Below(tokens.size() - done - count + 1))};
      const size_t end = done + count + sequence.upcoming.size();
      for (size_t position = done; position < end; ++position) {
        std::vector<TokenId> recent;
        for (size_t back = 0; back < addresses.ngram_max() && back <= position; ++back)
          recent.push_back(tokens[position - back]);
        for (uint32_t place = 0; place < config.engram_layers.size(); ++place) {
          std::vector<uint64_t> found(per_token), expected(per_token);
          engram.Find(sequence, static_cast<uint32_t>(position), place, found);
          addresses.RowsOf(place, recent, expected);
          EXPECT_EQ(found, expected) << "seed " << seed << " round " << round << " at " << position;
        }
      }
      for (; done < end - sequence.upcoming.size(); ++done)
        layout.SetToken(state.data(), static_cast<uint32_t>(done), tokens[done]);
    }
  }
}

}  // namespace
}  // namespace plumb::model
