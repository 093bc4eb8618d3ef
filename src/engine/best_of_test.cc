// engine/best_of_test.cc: which answers go on, in which order, and what is known of the others;
// then once over the engine.
#include "engine/best_of.h"

#include <gtest/gtest.h>

#include "engine/engine_testing.h"

namespace plumb::engine {
namespace {

class BestOfTest : public testing::Test {
 protected:
  struct Recorder final : EventSink {
    void OnEvent(TokenEvent event) override { events.push_back(std::move(event)); }
    std::vector<TokenEvent> events;
  };

  static TokenEvent Token(uint32_t sample, uint32_t token, float logprob) {
    TokenEvent event{.request = RequestId{7}, .sample_index = sample};
    event.tokens = {TokenId{token}};
    event.text = std::string(1, static_cast<char>('a' + token));
    event.logprobs = {{TokenId{token}, logprob, {}}};
    return event;
  }
  static TokenEvent End(uint32_t sample, FinishReason reason, uint32_t tokens) {
    TokenEvent event{.request = RequestId{7}, .sample_index = sample};
    event.finish = Finish{.reason = reason, .completion_tokens = tokens};
    return event;
  }

  Recorder sink_;
};

TEST_F(BestOfTest, TheHighestMeanLogprobGoesOnWholeAndOnlyWhenAllHaveEnded) {
  BestOf best({.samples = 3, .keep = 1}, true, sink_);
  best.OnEvent(Token(0, 0, -1.0f));
  best.OnEvent(Token(1, 1, -0.5f));
  best.OnEvent(Token(1, 2, -0.7f));  // a lower sum than sample 0 has, and a higher mean
  best.OnEvent(Token(2, 3, -3.0f));
  best.OnEvent(End(1, FinishReason::kStop, 2));
  best.OnEvent(End(0, FinishReason::kLength, 1));
  EXPECT_TRUE(sink_.events.empty());
  best.OnEvent(End(2, FinishReason::kLength, 1));
  ASSERT_EQ(sink_.events.size(), 1u);
  const TokenEvent& event = sink_.events[0];
  EXPECT_EQ(event.sample_index, 0u);
  EXPECT_EQ(event.tokens, (std::vector{TokenId{1}, TokenId{2}}));
  EXPECT_EQ(event.text, "bc");
  EXPECT_EQ(event.logprobs.size(), 2u);
  EXPECT_EQ(event.finish->reason, FinishReason::kStop);
  EXPECT_EQ(best.completion_tokens(), 4u);
}

TEST_F(BestOfTest, SeveralGoOnBestFirstAndEqualOnesInOrder) {
  BestOf best({.samples = 4, .keep = 3}, false, sink_);
  const float logprobs[] = {-2.0f, -1.0f, -2.0f, -1.5f};
  for (uint32_t i = 0; i < 4; ++i) best.OnEvent(Token(i, i, logprobs[i]));
  for (uint32_t i = 0; i < 4; ++i) best.OnEvent(End(i, FinishReason::kLength, 1));
  ASSERT_EQ(sink_.events.size(), 3u);
  const uint32_t expected[] = {1, 3, 0};
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(sink_.events[rank].sample_index, rank);
    EXPECT_EQ(sink_.events[rank].tokens[0], TokenId{expected[rank]});
    EXPECT_TRUE(sink_.events[rank].logprobs.empty()) << "nobody asked for them";
  }
}

TEST_F(BestOfTest, AFailedAnswerIsTheLastChoice) {
  BestOf best({.samples = 2, .keep = 1}, false, sink_);
  best.OnEvent(Token(1, 1, -9.0f));
  best.OnEvent(End(0, FinishReason::kCancelled, 0));
  best.OnEvent(End(1, FinishReason::kStop, 1));
  EXPECT_EQ(sink_.events.at(0).finish->reason, FinishReason::kStop);
}

TEST_F(BestOfTest, OverTheEngineItKeepsTheLikeliestOfItsSamples) {
  const auto tokenizer = MakeTokenizer();
  HashModel model(kVocabularySize, 200);
  base::ManualClock clock;
  const auto engine = Engine::Create(model, *tokenizer, clock, {}).value();
  Request request{.id = RequestId{1}, .prompt = {TokenId{5}, TokenId{6}}};
  request.sampling = {.temperature = 1, .ignore_end = true, .seed = 3, .tokens_max = 12};
  request.prompt_logprobs = true;
  const Request wide = BestOf::Widen(request, 8);
  Collector all(wide), kept(request);
  BestOf best({.samples = 8, .keep = 1}, false, kept);
  ASSERT_TRUE(engine->Submit(wide, all).ok());
  while (engine->Step()) {
  }
  ASSERT_TRUE(engine->Submit(wide, best).ok());
  while (engine->Step()) {
  }
  double highest = -1e9;
  uint32_t winner = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    double sum = 0;
    for (const TokenLogprob& logprob : all.answer(i).logprobs) sum += logprob.logprob;
    if (sum > highest) winner = i;
    highest = std::max(highest, sum);
  }
  EXPECT_EQ(kept.answer().tokens, all.answer(winner).tokens);
  EXPECT_EQ(kept.answer().prompt_logprobs.size(), 1u);
  EXPECT_EQ(best.completion_tokens(), 8u * 12u);
}

}  // namespace
}  // namespace plumb::engine
