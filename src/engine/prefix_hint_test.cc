// engine/prefix_hint_test.cc: what a request says of how long its prompt should be kept holds: its
// pages outlive others that are as old, for as long as was asked, and never at the cost of a
// request that runs. And what it stored under a hint is counted once.
#include <gtest/gtest.h>

#include "engine/engine_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 1200;
constexpr uint32_t kPage = model::kPageTokens;
constexpr base::Duration kMinute = base::Seconds(60);

class PrefixHint : public testing::Test {
 protected:
  void Make(uint32_t pages, EngineOptions options = {}, const HashStateShape& shape = {}) {
    model_ = std::make_unique<HashModel>(kVocabularySize, kContextMax, 4096, 64, shape);
    options.step_target = base::Duration{0};
    options.watchdog = base::Duration{0};
    GivePages(options, model_->info(), pages);
    engine_ = Engine::Create(*model_, *tokenizer_, clock_, options).value();
  }

  // Greedy; ends by length.
  Request Simple(std::vector<TokenId> prompt, std::vector<RetentionHint> hints = {},
                 uint32_t tokens_max = 1) {
    Request request{.id = RequestId{++last_id_}, .prompt = std::move(prompt)};
    request.sampling = {.temperature = 0, .ignore_end = true, .tokens_max = tokens_max};
    request.hints = std::move(hints);
    return request;
  }

  // Runs it alone, against the oracle.
  Finish Run(const Request& request) {
    sinks_.push_back(std::make_unique<Collector>(request));
    const base::Status status = engine_->Submit(request, *sinks_.back());
    EXPECT_TRUE(status.ok()) << status.ToString();
    while (engine_->Step()) engine_->CheckPages();
    const Answer& answer = sinks_.back()->answer();
    ExpectSameAnswer(answer, Oracle(*model_, *tokenizer_).Run(request, 0));
    return *answer.finish;
  }

  // Prompts that nobody has sent before and that ask for nothing, of more pages than there are.
  void Flood() {
    for (int prompt = 0; prompt < 12; ++prompt) {
      EXPECT_EQ(Run(Simple(RandomTokens(++flood_seed_, 3 * kPage + 5))).cached_tokens, 0u);
    }
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  base::ManualClock clock_;
  std::unique_ptr<HashModel> model_;
  std::vector<std::unique_ptr<Collector>> sinks_;
  std::unique_ptr<Engine> engine_;  // last: its end still calls the sinks
  uint64_t last_id_ = 0, flood_seed_ = 1000;
};

TEST_F(PrefixHint, APrefixWithAHintOutlivesAFloodThatEvictsOneWithout) {
  Make(20);
  const std::vector<TokenId> kept = RandomTokens(1, 4 * kPage + 40);
  const std::vector<TokenId> other = RandomTokens(2, 4 * kPage + 40);
  Run(Simple(kept, {{.tokens = 4 * kPage, .time = kMinute}}));
  Run(Simple(other));
  Flood();
  EXPECT_EQ(engine_->stats().pages_hinted, 4u);
  EXPECT_GT(engine_->stats().page_evictions, 20u);
  EXPECT_EQ(engine_->stats().hinted_evictions, 0u);
  EXPECT_EQ(Run(Simple(kept)).cached_tokens, 4 * kPage);
  EXPECT_EQ(Run(Simple(other)).cached_tokens, 0u);
  // That was a use: it has a minute from here.
  clock_.Advance(base::Seconds(59));
  Flood();
  EXPECT_EQ(Run(Simple(kept)).cached_tokens, 4 * kPage);
  clock_.Advance(kMinute);
  Flood();
  EXPECT_EQ(engine_->stats().pages_hinted, 0u);
  EXPECT_EQ(Run(Simple(kept)).cached_tokens, 0u);
}

TEST_F(PrefixHint, OnlyWholePagesUpToItsTokensAreKept) {
  Make(20);
  const std::vector<TokenId> prompt = RandomTokens(3, 3 * kPage + 100);
  Run(Simple(prompt, {{.tokens = 3 * kPage - 1, .time = kMinute}}));
  EXPECT_EQ(engine_->stats().pages_hinted, 2u);
  Flood();
  EXPECT_EQ(Run(Simple(prompt)).cached_tokens, 2 * kPage);
}

TEST_F(PrefixHint, ARunningRequestTakesThePagesThatItNeeds) {
  Make(8);
  Run(Simple(RandomTokens(4, 2 * kPage + 1), {{.tokens = 2 * kPage, .time = kMinute}}));
  EXPECT_EQ(engine_->stats().pages_hinted, 2u);
  const Finish finish = Run(Simple(RandomTokens(5, 7 * kPage), {}, kPage));
  EXPECT_EQ(finish.reason, FinishReason::kLength);
  EXPECT_EQ(engine_->stats().hinted_evictions, 2u);
  EXPECT_EQ(engine_->stats().pages_hinted, 0u);
}

TEST_F(PrefixHint, OneKeyDoesNotKeepMoreThanItsShare) {
  Make(40);
  const auto isolated = [&](uint64_t seed, uint8_t key, std::vector<RetentionHint> hints) {
    Request request = Simple(RandomTokens(seed, 4 * kPage + 20), std::move(hints));
    request.isolation.bytes[0] = key;
    return request;
  };
  const std::vector<RetentionHint> hints{{.tokens = 4 * kPage, .time = kMinute}};
  Run(isolated(10, 1, hints));
  for (uint64_t seed = 11; seed < 20; ++seed) Run(isolated(seed, 2, hints));
  EXPECT_EQ(engine_->stats().pages_hinted, 4u + 10);
  for (int flood = 0; flood < 3; ++flood) Flood();
  EXPECT_EQ(Run(isolated(10, 1, {})).cached_tokens, 4 * kPage);
  EXPECT_EQ(Run(isolated(19, 2, {})).cached_tokens, 4 * kPage);
  EXPECT_EQ(Run(isolated(11, 2, {})).cached_tokens, 0u);
}

TEST_F(PrefixHint, CountsWhatItStoredUnderEachHint) {
  Make(40);
  const std::vector<TokenId> prompt = RandomTokens(6, 5 * kPage + 7);
  const std::vector<RetentionHint> hints{{.tokens = kPage + 3, .time = {60 * kMinute.ns}},
                                         {.tokens = 4 * kPage, .time = kMinute}};
  using Stored = std::array<uint32_t, kHintsMax>;
  EXPECT_EQ(Run(Simple(prompt, hints)).stored_tokens, (Stored{kPage, 3 * kPage}));
  // Once.
  const Finish again = Run(Simple(prompt, hints));
  EXPECT_EQ(again.stored_tokens, (Stored{0, 0}));
  EXPECT_GE(again.cached_tokens, 5 * kPage);
  // Without a hint nothing is counted, though it is stored.
  EXPECT_EQ(Run(Simple(RandomTokens(7, 2 * kPage))).stored_tokens, (Stored{0, 0}));
  // Of a page whose beginning was copied, the rest.
  std::vector<TokenId> branched = prompt;
  branched[2 * kPage + 50] = TokenId{base::Index(branched[2 * kPage + 50]) ^ 1};
  const Finish finish = Run(Simple(branched, hints));
  EXPECT_EQ(finish.cached_tokens, 2 * kPage + 50);
  EXPECT_EQ(finish.stored_tokens, (Stored{0, 2 * kPage - 50}));
}

TEST_F(PrefixHint, OfTwoThatComputeTheSameOneHasStoredIt) {
  Make(40, {.prefill_rows_max = 50});
  const std::vector<RetentionHint> hints{{.tokens = 4 * kPage, .time = kMinute}};
  uint32_t stored = 0;
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i) requests.push_back(Simple(RandomTokens(8, 4 * kPage + 9), hints));
  for (const Request& request : requests) {
    sinks_.push_back(std::make_unique<Collector>(request));
    ASSERT_TRUE(engine_->Submit(request, *sinks_.back()).ok());
  }
  while (engine_->Step()) engine_->CheckPages();
  for (const auto& sink : sinks_) stored += sink->answer().finish->stored_tokens[0];
  EXPECT_EQ(stored, 4 * kPage);
}

// A model with checkpoints can only go on from one; a hint says where others are likely to.
TEST_F(PrefixHint, WhereItEndsACheckpointIsStored) {
  const HashStateShape shape{.window = 4, .backtrack_max = 3, .replay_rows = 40};
  for (const bool hinted : {true, false}) {
    Make(40, {}, shape);
    std::vector<TokenId> prompt = RandomTokens(9, 6 * kPage);
    std::vector<RetentionHint> hints;
    if (hinted) hints = {{.tokens = 2 * kPage + 60, .time = kMinute}};
    Run(Simple(prompt, hints));
    for (size_t i = 2 * kPage + 60; i < prompt.size(); ++i) prompt[i] = TokenId{7};
    EXPECT_EQ(Run(Simple(prompt)).cached_tokens, hinted ? 2 * kPage : 0);
  }
}

TEST_F(PrefixHint, WithItsPagesItsCheckpointOutlivesAFlood) {
  const HashStateShape shape{.window = 4, .backtrack_max = 3, .replay_rows = 40};
  Make(30, {.checkpoints_max = 6}, shape);
  const std::vector<TokenId> kept = RandomTokens(1, 3 * kPage + 45);
  const std::vector<TokenId> other = RandomTokens(2, 3 * kPage + 45);
  Run(Simple(kept, {{.tokens = 3 * kPage, .time = kMinute}}));
  Run(Simple(other));
  for (int flood = 0; flood < 2; ++flood) Flood();
  EXPECT_EQ(Run(Simple(kept)).cached_tokens, 3 * kPage);
  EXPECT_EQ(Run(Simple(other)).cached_tokens, 0u);
}

TEST_F(PrefixHint, HintsOutOfRangeAreRefused) {
  Make(20);
  const auto refused = [&](std::vector<RetentionHint> hints) {
    const Request request = Simple(RandomTokens(1, 10), std::move(hints));
    Collector sink(request);
    const base::Status status = engine_->Submit(request, sink);
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
    return status.field();
  };
  EXPECT_EQ(refused({{.tokens = 11, .time = kMinute}}), "hints.tokens");
  EXPECT_EQ(refused({{.tokens = 1, .time = {0}}}), "hints.time");
  EXPECT_EQ(refused({{.tokens = 1, .time = {-1}}}), "hints.time");
  EXPECT_EQ(refused({{.tokens = 1, .time = {kHintTimeMax.ns + 1}}}), "hints.time");
  EXPECT_EQ(refused(std::vector<RetentionHint>(3, {.tokens = 1, .time = kMinute})), "hints");
}

}  // namespace
}  // namespace plumb::engine
