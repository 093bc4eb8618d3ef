// engine/never_sampled_test.cc: what a model says is never sampled stands in no answer, by whatever
// way it could have come there, though it has the largest logit of all.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/drafter_testing.h"
#include "engine/engine_testing.h"
#include "engine/model_drafter.h"

namespace plumb::engine {
namespace {

constexpr TokenId kImage{'E'};  // a letter, so that grammars allow it

class NeverSampled : public testing::Test {
 protected:
  NeverSampled() {
    model_.after_row = [](std::span<float> row) { row[base::Index(kImage)] += 60; };
    model_.set_never_sampled({kImage});
  }

  Request Simple(float temperature) {
    Request request{.id = RequestId{++last_id_}, .prompt = {TokenId{65}, kImage, TokenId{67}}};
    request.sampling = {
        .temperature = temperature, .ignore_end = true, .seed = last_id_ * 77, .tokens_max = 40};
    return request;
  }

  Answer Run(const Request& request, EngineOptions options = {}) {
    options.kv_budget_bytes = 40 * kvcache::PagePool::kAlignment;  // CheckPages looks at each page
    auto engine = Engine::Create(model_, *tokenizer_, clock_, options).value();
    Collector sink(request);
    EXPECT_TRUE(engine->Submit(request, sink).ok());
    while (engine->Step()) engine->CheckPages();
    return sink.answer();
  }

  // The oracle's answer, which has none of it.
  void ExpectNone(const Request& request, const EngineOptions& options = {}) {
    const Answer answer = Run(request, options);
    ExpectSameAnswer(answer, Oracle(model_, *tokenizer_).Run(request, 0));
    EXPECT_GE(answer.tokens.size(), 1u);
    EXPECT_EQ(std::ranges::count(answer.tokens, kImage), 0);
    for (const TokenLogprob& entry : answer.logprobs) {
      for (const TopLogprob& top : entry.top) EXPECT_NE(top.token, kImage);
    }
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  HashModel model_{kVocabularySize, 600};
  base::ManualClock clock_;
  uint64_t last_id_ = 0;
};

TEST_F(NeverSampled, WithoutTheRuleItWouldBeAllThereIs) {
  model_.set_never_sampled({});
  for (const float temperature : {0.0f, 1.0f}) {
    const Answer answer = Run(Simple(temperature));
    EXPECT_EQ(std::ranges::count(answer.tokens, kImage), 40);
  }
}

TEST_F(NeverSampled, WhateverTheParametersAre) {
  for (const float temperature : {0.0f, 0.8f, 2.0f}) {
    ExpectNone(Simple(temperature));
    Request one = Simple(temperature);
    one.sampling.top_k = 1;
    ExpectNone(one);
    Request nucleus = Simple(temperature);
    nucleus.sampling.top_p = 0.5f;
    nucleus.sampling.min_p = 0.1f;
    ExpectNone(nucleus);
    Request wished = Simple(temperature);
    wished.sampling.logit_bias = {{kImage, 100.0f}};
    wished.sampling.repetition_penalty = 0.5f;  // for what the prompt has
    wished.sampling.presence_penalty = -2.0f;
    ExpectNone(wished);
  }
}

TEST_F(NeverSampled, NorIsItAnAlternative) {
  Request request = Simple(0.9f);
  request.sampling.logprobs = true;
  request.sampling.top_logprobs = kTopLogprobsMax;
  request.prompt_logprobs = true;
  ExpectNone(request);
}

TEST_F(NeverSampled, NorDoesAGrammarBringItIn) {
  uint32_t allowed = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Request request = Simple(seed % 2 == 0 ? 0.0f : 0.8f);
    request.sampling.ignore_end = false;
    request.grammar = std::make_shared<FakeGrammar>(
        FakeGrammarOptions{.seed = seed, .end_token = kEndToken, .tokens_max = 30});
    ExpectNone(request);
    allowed += request.grammar->NewState()->Accept(kImage).ok();
  }
  EXPECT_GT(allowed, 2u) << "the grammars would";
}

TEST_F(NeverSampled, NorIsItKeptWhenItWasGuessed) {
  FakeDrafter drafter(1, 10, kVocabularySize);
  Request request = Simple(0.8f);
  const std::vector<TokenId> wrong(40, kImage);
  drafter.Know(request.sampling.seed, 0, request.prompt, wrong);
  ExpectNone(request, {.unweighed_drafter = &drafter});
}

TEST_F(NeverSampled, NorDoesADraftModelGuessIt) {
  HashModel draft(kVocabularySize, 600);
  draft.after_row = [](std::span<float> row) { row[base::Index(kImage)] += 3; };
  const EngineOptions options{.speculation = Speculation::kDraft,
                              .draft_model = &draft,
                              .draft_tokenizer = tokenizer_.get()};
  auto engine = Engine::Create(model_, *tokenizer_, clock_, options).value();
  Request request = Simple(0.8f);
  request.speculation = Speculation::kDraft;
  Collector sink(request);
  ASSERT_TRUE(engine->Submit(request, sink).ok());
  while (engine->Step()) {
  }
  ExpectSameAnswer(sink.answer(), Oracle(model_, *tokenizer_).Run(request, 0));
  // The same weights as the target's: all that it guesses is right, since it guesses no image.
  EXPECT_GT(engine->stats().draft_rows, 5u);
  EXPECT_EQ(engine->stats().drafts_kept, engine->stats().draft_rows);
}

TEST_F(NeverSampled, SomethingMustBeLeft) {
  std::vector<TokenId> all;
  for (uint32_t id = 0; id < kVocabularySize; ++id) all.push_back(TokenId{id});
  model_.set_never_sampled(all);
  EXPECT_EQ(Engine::Create(model_, *tokenizer_, clock_, {}).status().field(), "model");
}

TEST_F(NeverSampled, WeightsWithOtherExceptionsDoNotTakeTheirPlace) {
  auto engine = Engine::Create(model_, *tokenizer_, clock_, {}).value();
  HashModel other(kVocabularySize, 600);
  const auto swapped = engine->SwapModel(other, "", base::kNever);
  EXPECT_EQ(swapped.status().field(), "model");
  other.set_never_sampled({kImage});
  EXPECT_TRUE(engine->SwapModel(other, "", base::kNever).ok());
}

}  // namespace
}  // namespace plumb::engine
