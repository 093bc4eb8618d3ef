// engine/engine_features_test.cc: drafts, grammars, log-probabilities of prompts and weights put in
// place of others, one promise a test. All of them at once: engine_property_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/drafter_testing.h"
#include "engine/engine_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 600;

class Features : public testing::Test {
 protected:
  void Make(EngineOptions options = {}) {
    if (options.unweighed_drafter == nullptr) options.speculation = Speculation::kOff;
    // CheckPages looks at each page.
    options.kv_budget_bytes = std::min(options.kv_budget_bytes, 40 * kvcache::PagePool::kAlignment);
    engine_ = Engine::Create(model_, *tokenizer_, clock_, options).value();
  }

  Request Simple(uint32_t tokens_max = 40) {
    Request request{.id = RequestId{++last_id_}, .prompt = {TokenId{65}, TokenId{66}, TokenId{67}}};
    request.sampling = {
        .temperature = 0.9f, .ignore_end = true, .seed = last_id_ * 77, .tokens_max = tokens_max};
    return request;
  }

  Collector& Submit(const Request& request) {
    sinks_.push_back(std::make_unique<Collector>(request));
    const base::Status status = engine_->Submit(request, *sinks_.back());
    EXPECT_TRUE(status.ok()) << status.ToString();
    return *sinks_.back();
  }

  Answer Expected(const Request& request, uint32_t sample = 0) {
    return Oracle(model_, *tokenizer_).Run(request, sample);
  }

  void RunDry() {
    while (engine_->Step()) engine_->CheckPages();
  }

  // Runs it alone, against the oracle.
  const Answer& ExpectExact(const Request& request) {
    Collector& sink = Submit(request);
    RunDry();
    ExpectSameAnswer(sink.answer(), Expected(request));
    return sink.answer();
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  HashModel model_{kVocabularySize, kContextMax};
  base::ManualClock clock_;
  std::vector<std::unique_ptr<Collector>> sinks_;
  std::unique_ptr<Engine> engine_;  // last: its end still calls the sinks
  uint64_t last_id_ = 0;
};

TEST_F(Features, AModelIsToldWhatComesAfterAChunkOfAPrompt) {
  Make({.prefill_rows_max = 64});
  Request request = Simple(3);
  request.prompt.clear();
  for (uint32_t i = 0; i < 300; ++i) request.prompt.push_back(TokenId{i % kVocabularySize});
  uint32_t told = 0;
  model_.on_sequence = [&](const model::SequenceRows& rows) {
    const auto known = std::span<const TokenId>(request.prompt);
    const size_t end = rows.position + rows.tokens.size();
    const auto left = known.subspan(std::min(end, known.size()));
    EXPECT_TRUE(
        std::ranges::equal(rows.upcoming, left.first(std::min(left.size(), rows.tokens.size()))))
        << "after " << end << " tokens";
    told += !rows.upcoming.empty();
  };
  Submit(request);
  RunDry();
  EXPECT_GE(told, 300u / 64);
}

using Drafts = Features;

TEST_F(Drafts, RightOnesAreKeptInOneStepEach) {
  FakeDrafter drafter(1, 10, kVocabularySize);
  Make({.unweighed_drafter = &drafter});
  Request request = Simple(100);
  request.sampling.logprobs = true;
  request.sampling.top_logprobs = 3;
  request.sampling.frequency_penalty = 0.5f;
  drafter.Know(request.sampling.seed, 0, request.prompt, Expected(request).tokens);
  ExpectExact(request);
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.drafts_kept, stats.draft_rows) << "none of them was wrong";
  EXPECT_GT(stats.drafts_kept, 50u);
  EXPECT_EQ(stats.steps, 100 - stats.drafts_kept);
  EXPECT_EQ(stats.generated_tokens, 100u);
}

TEST_F(Drafts, WrongOnesCostRowsAndChangeNothing) {
  FakeDrafter drafter(2, 0, kVocabularySize);
  Make({.unweighed_drafter = &drafter});
  ExpectExact(Simple(60));
  EXPECT_GT(engine_->stats().draft_rows, 100u);
  EXPECT_LT(engine_->stats().drafts_kept, 10u);  // one may be right by chance
}

TEST_F(Drafts, AnEndAmongThemEndsTheAnswerThere) {
  FakeDrafter drafter(3, 10, kVocabularySize);
  Make({.unweighed_drafter = &drafter});
  for (const bool by_string : {false, true}) {
    Request request = Simple(60);
    const Answer whole = Expected(request);
    drafter.Know(request.sampling.seed, 0, request.prompt, whole.tokens);
    if (by_string) {
      request.sampling.stop = {whole.text.substr(whole.text.size() / 2, 3)};
    } else {
      request.sampling.stop_tokens = {whole.tokens[25]};
    }
    const Answer& answer = ExpectExact(request);
    EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
    EXPECT_LT(answer.tokens.size(), 60u);
    EXPECT_EQ(answer.finish->completion_tokens, answer.tokens.size());
  }
}

TEST_F(Drafts, PagesOfWrongOnesAreNotReused) {
  FakeDrafter drafter(4, 5, kVocabularySize);
  Make({.unweighed_drafter = &drafter});
  Request request = Simple(300);
  drafter.Know(request.sampling.seed, 0, request.prompt, Expected(request).tokens);
  const Answer first = ExpectExact(request);
  // The whole conversation again, on the pages that the first answer left.
  Request next = Simple(30);
  next.prompt = request.prompt;
  next.prompt.insert(next.prompt.end(), first.tokens.begin(), first.tokens.end());
  const Answer& second = ExpectExact(next);
  EXPECT_GT(second.finish->cached_tokens, 2 * model::kPageTokens);
}

using Grammars = Features;

TEST_F(Grammars, AnAnswerIsWhatTheGrammarAllowsAndEndsWhenItIsComplete) {
  Make();
  Request request = Simple();
  request.sampling.ignore_end = false;
  request.sampling.logprobs = true;
  request.grammar = std::make_shared<FakeGrammar>(
      FakeGrammarOptions{.seed = 9, .end_token = kEndToken, .tokens_max = 13});
  const Answer& answer = ExpectExact(request);
  EXPECT_LE(answer.tokens.size(), 13u);
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
  const auto state = request.grammar->NewState();
  for (const TokenId token : answer.tokens) EXPECT_TRUE(state->Accept(token).ok());
}

TEST_F(Grammars, ForcedTokensComeSeveralInAStep) {
  Make();
  uint64_t tokens = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Request request = Simple();
    request.sampling.ignore_end = false;
    request.grammar =
        std::make_shared<FakeGrammar>(FakeGrammarOptions{.seed = seed, .end_token = kEndToken});
    tokens += ExpectExact(request).tokens.size();
  }
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.drafts_kept, stats.draft_rows) << "what is forced is never wrong";
  EXPECT_GT(stats.drafts_kept, 10u);
  EXPECT_EQ(stats.steps + stats.drafts_kept, tokens);
}

TEST_F(Grammars, ALimitEndsThatSampleWithItsError) {
  Make();
  Request request = Simple();
  request.sampling.ignore_end = false;
  request.grammar = std::make_shared<FakeGrammar>(FakeGrammarOptions{.seed = 2, .fails_after = 9});
  Collector& sink = Submit(request);
  const Collector& other = Submit(Simple(20));
  RunDry();
  EXPECT_EQ(sink.answer().finish->reason, FinishReason::kError);
  EXPECT_EQ(sink.answer().finish->status.code(), base::Code::kUnsupported);
  EXPECT_EQ(sink.answer().tokens.size(), 9u);
  EXPECT_EQ(other.answer().finish->reason, FinishReason::kLength);
}

TEST_F(Grammars, IgnoringTheEndIsRefused) {
  Make();
  Request request = Simple();
  request.grammar = std::make_shared<FakeGrammar>(FakeGrammarOptions{});
  Collector sink(request);
  const base::Status status = engine_->Submit(request, sink);
  EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
  EXPECT_EQ(status.field(), "sampling.ignore_end");
}

using PromptLogprobs = Features;

TEST_F(PromptLogprobs, AreThoseOfEachTokenInBoundedParts) {
  // Fewer rows with logits a step than the prompt has tokens.
  HashModel model(kVocabularySize, kContextMax, 4096, 20);
  engine_ = Engine::Create(model, *tokenizer_, clock_,
                           {.sequences_max = 4, .speculation = Speculation::kOff})
                .value();
  base::Rng rng(3);
  for (const uint32_t length : {1u, 2u, 19u, 20u, 21u, 300u}) {
    Request request = Simple(5);
    request.prompt.clear();
    while (request.prompt.size() < length) {
      request.prompt.push_back(TokenId{static_cast<uint32_t>(rng.Below(kVocabularySize))});
    }
    request.prompt_logprobs = true;
    request.sampling.top_logprobs = 4;
    request.samples = 2;
    const Collector& sink = Submit(request);
    Submit(Simple(30));
    RunDry();
    ExpectSameAnswer(sink.answer(0), Expected(request, 0));
    ExpectSameAnswer(sink.answer(1), Expected(request, 1));
    EXPECT_EQ(sink.answer(0).prompt_logprobs.size(), length - 1);
  }
}

TEST_F(PromptLogprobs, ReuseNoPagesAndLeaveSomeForOthers) {
  Make();
  Request request = Simple(5);
  for (uint32_t i = 0; i < 300; ++i) request.prompt.push_back(TokenId{i % 7 + 60});
  EXPECT_EQ(ExpectExact(request).finish->cached_tokens, 0u);
  request.id = RequestId{++last_id_};
  request.prompt_logprobs = true;
  EXPECT_EQ(ExpectExact(request).finish->cached_tokens, 0u);
  request.id = RequestId{++last_id_};
  request.prompt_logprobs = false;
  EXPECT_GT(ExpectExact(request).finish->cached_tokens, 200u);
}

TEST_F(PromptLogprobs, ComeOnceAlsoWhenTheSampleIsPreempted) {
  uint64_t preemptions = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    base::Rng rng(seed);
    Make({.kv_budget_bytes = 5 * kvcache::PagePool::kAlignment, .prefill_rows_max = 60});
    std::vector<Request> requests;
    for (int i = 0; i < 4; ++i) {
      Request request = Simple(200);
      request.prompt.assign(150 + rng.Below(100), TokenId{static_cast<uint32_t>(70 + i)});
      request.prompt_logprobs = true;
      requests.push_back(request);
      Submit(request);
      engine_->Step();
    }
    RunDry();
    for (size_t i = 0; i < requests.size(); ++i) {
      ExpectSameAnswer(sinks_[sinks_.size() - 4 + i]->answer(), Expected(requests[i]));
    }
    preemptions += engine_->stats().preemptions;
  }
  EXPECT_GT(preemptions, 5u);
}

TEST_F(PromptLogprobs, LogitsThatAreNotFiniteEndTheSample) {
  Make();
  model_.after_row = [](std::span<float> row) { row[7] = HUGE_VALF; };
  Request request = Simple();
  request.prompt_logprobs = true;
  const Collector& sink = Submit(request);
  RunDry();
  EXPECT_EQ(sink.answer().finish->status.code(), base::Code::kInternal);
  EXPECT_TRUE(sink.answer().tokens.empty());
}

using Swaps = Features;

TEST_F(Swaps, WhatHasBegunEndsOnTheOldWeightsAndTheRestBeginsOnTheNew) {
  HashModel other(kVocabularySize, kContextMax);
  other.set_salt(99);
  Make({.sequences_max = 1, .model_content = "old"});
  const Request begun = Simple(), waiting = Simple();
  const Collector& first = Submit(begun);
  const Collector& second = Submit(waiting);
  engine_->Step();
  const auto version = engine_->SwapModel(other, "new", base::kNever);
  ASSERT_TRUE(version.ok()) << version.status().ToString();
  EXPECT_EQ(*version, 2u);
  EXPECT_EQ(engine_->weights_version(), 2u);
  ASSERT_TRUE(first.Ended());
  EXPECT_FALSE(second.Ended());
  RunDry();
  ExpectSameAnswer(first.answer(), Expected(begun));
  EXPECT_EQ(first.answer().finish->weights_version, 1u);
  ExpectSameAnswer(second.answer(), Oracle(other, *tokenizer_).Run(waiting, 0));
  EXPECT_EQ(second.answer().finish->weights_version, 2u);
}

TEST_F(Swaps, NoPageOfTheOldWeightsIsReused) {
  HashModel other(kVocabularySize, kContextMax);
  other.set_salt(99);
  Make({.model_content = "old"});
  Request request = Simple(5);
  request.prompt.assign(300, TokenId{66});
  ExpectExact(request);
  EXPECT_GT(engine_->stats().pages_cached, 0u);
  request.id = RequestId{++last_id_};
  const Collector& sink = Submit(request);  // its pages are named for the old weights
  ASSERT_TRUE(engine_->SwapModel(other, "new", base::kNever).ok());
  RunDry();
  ExpectSameAnswer(sink.answer(), Oracle(other, *tokenizer_).Run(request, 0));
  EXPECT_EQ(sink.answer().finish->cached_tokens, 0u);
  // And back: nor any of the new ones.
  ASSERT_TRUE(engine_->SwapModel(model_, "old", base::kNever).ok());
  EXPECT_EQ(engine_->stats().pages_cached, 0u);
  request.id = RequestId{++last_id_};
  EXPECT_EQ(ExpectExact(request).finish->cached_tokens, 0u);
}

TEST_F(Swaps, AnOverdueOneChangesNothing) {
  HashModel other(kVocabularySize, kContextMax);
  other.set_salt(99);
  Make({.sequences_max = 1});
  model_.before_forward = [&] { clock_.Advance(base::Milliseconds(1)); };
  const Request begun = Simple(), waiting = Simple();
  const Collector& first = Submit(begun);
  const Collector& second = Submit(waiting);
  engine_->Step();
  const auto version = engine_->SwapModel(other, "new", clock_.Now() + base::Milliseconds(5));
  EXPECT_EQ(version.status().code(), base::Code::kDeadline);
  RunDry();
  ExpectSameAnswer(first.answer(), Expected(begun));
  ExpectSameAnswer(second.answer(), Expected(waiting));
  EXPECT_EQ(second.answer().finish->weights_version, 1u);
}

TEST_F(Swaps, AnotherShapeIsRefusedAndSoIsAStoppingEngine) {
  Make();
  HashModel vocabulary(kVocabularySize + 1, kContextMax), context(kVocabularySize, 100),
      rows(kVocabularySize, kContextMax, 10), good(kVocabularySize, kContextMax);
  for (HashModel* model : {&vocabulary, &context, &rows}) {
    const auto version = engine_->SwapModel(*model, "x", base::kNever);
    EXPECT_EQ(version.status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(version.status().field(), "model");
  }
  engine_->Stop();
  EXPECT_EQ(engine_->SwapModel(good, "x", base::kNever).status().code(), base::Code::kUnavailable);
}

TEST_F(Swaps, OneThatComesWhileTheLastRequestRunsIsItsSuccessor) {
  HashModel other(kVocabularySize, kContextMax);
  Make();
  engine_->Start();
  for (uint32_t round = 0; round < 4; ++round) {
    const Collector& sink = Submit(Simple(200));
    HashModel& next = round % 2 == 0 ? other : model_;
    ASSERT_TRUE(engine_->SwapModel(next, "next", base::kNever).ok());
    EXPECT_TRUE(engine_->Healthy());
    engine_->Cancel(RequestId{last_id_});  // when it had not begun before
    sinks_.back()->WaitForEnd();
    EXPECT_TRUE(sink.Ended());
  }
  engine_->Drain(base::kNever);
}

TEST_F(Swaps, SamplesOfARequestRunOnTheSameWeights) {
  HashModel other(kVocabularySize, kContextMax);
  other.set_salt(99);
  Make({.sequences_max = 1});  // so that they run one after the other
  Request request = Simple(30);
  request.samples = 3;
  const Collector& sink = Submit(request);
  const Request next = Simple();
  const Collector& after = Submit(next);
  engine_->Step();
  ASSERT_TRUE(engine_->SwapModel(other, "new", base::kNever).ok());
  RunDry();
  for (uint32_t sample = 0; sample < 3; ++sample) {
    EXPECT_EQ(sink.answer(sample).finish->weights_version, 1u) << sample;
    ExpectSameAnswer(sink.answer(sample), Oracle(model_, *tokenizer_).Run(request, sample));
  }
  EXPECT_EQ(after.answer().finish->weights_version, 2u);
  ExpectSameAnswer(after.answer(), Oracle(other, *tokenizer_).Run(next, 0));
}

TEST_F(Swaps, UnderLoadEachAnswerIsThatOfTheWeightsItNames) {
  HashModel other(kVocabularySize, kContextMax);
  other.set_salt(99);
  Make({.sequences_max = 3, .waiting_max = 200});
  engine_->Start();
  std::vector<Request> requests;
  for (int i = 0; i < 100; ++i) {
    Request request = Simple(static_cast<uint32_t>(5 + i % 30));
    request.samples = i % 10 == 0 ? 2 : 1;
    request.prompt.assign(1 + static_cast<size_t>(i) * 3, TokenId{80});
    requests.push_back(request);
    Submit(request);
    if (i % 25 == 24) {
      const bool odd = i / 25 % 2 == 0;
      HashModel& next = odd ? other : model_;
      const auto version = engine_->SwapModel(next, odd ? "new" : "old", base::kNever);
      ASSERT_TRUE(version.ok()) << version.status().ToString();
    }
  }
  engine_->Drain(base::kNever);
  for (size_t i = 0; i < requests.size(); ++i) {
    for (uint32_t sample = 0; sample < requests[i].samples; ++sample) {
      const Answer& answer = sinks_[i]->answer(sample);
      ASSERT_TRUE(answer.finish);
      EXPECT_EQ(answer.finish->weights_version, sinks_[i]->answer(0).finish->weights_version);
      const HashModel& model = answer.finish->weights_version % 2 == 1 ? model_ : other;
      ExpectSameAnswer(answer, Oracle(model, *tokenizer_).Run(requests[i], sample));
    }
  }
  EXPECT_EQ(engine_->weights_version(), 5u);
}

}  // namespace
}  // namespace plumb::engine
