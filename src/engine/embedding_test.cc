// engine/embedding_test.cc
// Embeddings on the engine, one promise a test: which rows are computed and reused, what a
// preemption costs, what is refused, how they end. With everything else at once, and the same bits
// as alone: engine_property_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 900;
constexpr uint32_t kPage = model::kPageTokens;
constexpr HashStateShape kReplay{.window = 8, .backtrack_max = 3, .replay_rows = 140};
constexpr HashStateShape kNoReplay{.window = 8, .backtrack_max = 3};

class Embeddings : public testing::TestWithParam<HashStateShape> {
 protected:
  void Make(EngineOptions options = {}, uint32_t pages = 40) {
    GivePages(options, model_.info(), pages);
    options.step_target = base::Duration{0};
    options.speculation = Speculation::kNgram;
    engine_ = Engine::Create(model_, *tokenizer_, clock_, options).value();
  }

  Request Embed(Pooling pooling, size_t tokens, uint64_t seed = 1) {
    Request request{.id = RequestId{++last_id_}, .pooling = pooling};
    base::Rng rng(seed);
    while (request.prompt.size() < tokens) {
      request.prompt.push_back(TokenId{static_cast<uint32_t>(rng.Below(kVocabularySize))});
    }
    request.sampling.tokens_max = 0;
    return request;
  }
  Request Generate(size_t tokens, uint64_t seed = 1) {
    Request request = Embed(Pooling::kNone, tokens, seed);
    request.sampling = {.temperature = 0, .ignore_end = true, .tokens_max = 30};
    return request;
  }

  Collector& Submit(const Request& request) {
    sinks_.push_back(std::make_unique<Collector>(request));
    const base::Status status = engine_->Submit(request, *sinks_.back());
    EXPECT_TRUE(status.ok()) << status.ToString();
    return *sinks_.back();
  }
  void RunDry() {
    while (engine_->Step()) engine_->CheckPages();
  }
  void ExpectOracle(const Answer& answer, const Request& request) {
    ExpectSameAnswer(answer, Oracle(model_, *tokenizer_).Run(request, 0));
  }
  // Alone, against the oracle; the tokens that were reused.
  uint32_t Cached(const Request& request) {
    const Collector& sink = Submit(request);
    RunDry();
    ExpectOracle(sink.answer(), request);
    return sink.answer().finish->cached_tokens;
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  HashModel model_{kVocabularySize, kContextMax, 4096, 4, GetParam()};
  base::ManualClock clock_;
  std::vector<std::unique_ptr<Collector>> sinks_;
  std::unique_ptr<Engine> engine_;  // last: its end still calls the sinks
  uint64_t last_id_ = 0;
};

TEST_P(Embeddings, AreThoseOfTheDefinitionAtEveryLength) {
  Make({.sequences_max = 4, .prefill_rows_max = 100, .prefix_cache = false});
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    for (const uint32_t length : {1u, 2u, 99u, 100u, 101u, 140u, 141u, 3 * kPage, kContextMax}) {
      SCOPED_TRACE(length);
      const EngineStats before = engine_->stats();
      EXPECT_EQ(Cached(Embed(pooling, length)), 0u);
      const Answer& answer = sinks_.back()->answer();
      EXPECT_EQ(answer.finish->completion_tokens, 0u);
      EXPECT_TRUE(answer.tokens.empty());
      double squares = 0;
      for (const float value : answer.embedding) squares += double{value} * double{value};
      EXPECT_NEAR(squares, 1, 1e-6);
      EXPECT_EQ(engine_->stats().computed_rows - before.computed_rows, length);
      EXPECT_EQ(engine_->stats().generated_tokens, 0u);
      EXPECT_EQ(engine_->stats().embeddings, before.embeddings + 1);
    }
  }
}

// More rows a step than may have logits: those are few, hidden states are not.
TEST_P(Embeddings, AreNotCutByRowsWithLogits) {
  Make({.sequences_max = 4, .rows_max = 500, .prefill_rows_max = 500, .prefix_cache = false});
  Submit(Embed(Pooling::kMean, 400));
  const uint64_t before = engine_->stats().steps;
  RunDry();
  EXPECT_EQ(engine_->stats().steps - before, 1u);
}

TEST_P(Embeddings, OfTheLastRowReusePagesAndMeansLeaveSomeForOthers) {
  Make();
  EXPECT_EQ(Cached(Embed(Pooling::kMean, 500)), 0u);
  // Up to the last token; or to the last checkpoint before it, or before the last K rows.
  const bool states = GetParam().window > 0, replays = GetParam().replay_rows > 0;
  const uint32_t most = replays ? 2 * kPage : states ? 3 * kPage : 499;
  EXPECT_EQ(Cached(Embed(Pooling::kLast, 500)), most);
  EXPECT_EQ(Cached(Generate(500)), most);
  EXPECT_EQ(Cached(Embed(Pooling::kMean, 500)), 0u) << "every row has a hidden state";
}

TEST_P(Embeddings, PreemptedOnesPoolEachRowOnce) {
  uint64_t preemptions = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    Make({.prefill_rows_max = 60, .prefix_cache = rng.Below(2) == 0}, 8);
    std::vector<Request> requests;
    for (int i = 0; i < 6; ++i) {
      const size_t length = 100 + rng.Below(500);
      const uint64_t tokens = rng.Below(3);
      requests.push_back(i % 2 == 0
                             ? Embed(i == 0 ? Pooling::kLast : Pooling::kMean, length, tokens)
                             : Generate(length, tokens));
      requests.back().priority = i < 3 ? Priority::kBatch : Priority::kDefault;
      Submit(requests.back());
      for (uint64_t steps = rng.Below(6); steps > 0; --steps) engine_->Step();
    }
    RunDry();
    for (size_t i = 0; i < requests.size(); ++i) {
      ExpectOracle(sinks_[sinks_.size() - requests.size() + i]->answer(), requests[i]);
    }
    preemptions += engine_->stats().preemptions;
  }
  EXPECT_GT(preemptions, 5u);
}

TEST_P(Embeddings, CancelledAndOverdueOnesGiveNothing) {
  Make({.prefill_rows_max = 50});
  Request overdue = Embed(Pooling::kMean, 300, 2);
  overdue.deadline = clock_.Now() + base::Milliseconds(5);
  const Request cancelled = Embed(Pooling::kMean, 300);
  const Collector& first = Submit(cancelled);
  const Collector& second = Submit(overdue);
  engine_->Step();
  engine_->Cancel(cancelled.id);
  clock_.Advance(base::Milliseconds(6));
  RunDry();
  EXPECT_EQ(first.answer().finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(second.answer().finish->status.code(), base::Code::kDeadline);
  EXPECT_TRUE(first.answer().embedding.empty() && second.answer().embedding.empty());
  EXPECT_EQ(engine_->stats().pages_used, 0u);
  EXPECT_EQ(engine_->stats().embeddings, 0u);
}

TEST_P(Embeddings, HiddenStatesThatAreNotFiniteEndIt) {
  Make();
  model_.after_hidden = [](std::span<float> row) { row[3] = HUGE_VALF; };
  const Collector& sink = Submit(Embed(Pooling::kMean, 300));
  RunDry();
  EXPECT_EQ(sink.answer().finish->status.code(), base::Code::kInternal);
  EXPECT_TRUE(sink.answer().embedding.empty());
}

TEST_P(Embeddings, WhatTheyCannotHaveIsRefused) {
  Make();
  const auto refused = [&](Request request) {
    Collector sink(request);
    const base::Status status = engine_->Submit(request, sink);
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
    return status.field();
  };
  const Request good = Embed(Pooling::kMean, 10);
  Request bad = good;
  bad.samples = 2;
  EXPECT_EQ(refused(bad), "pooling");
  bad = good;
  bad.prompt_logprobs = true;
  EXPECT_EQ(refused(bad), "pooling");
  bad = good;
  bad.sampling.logprobs = true;
  EXPECT_EQ(refused(bad), "pooling");
  bad = good;
  bad.grammar = std::make_shared<FakeGrammar>(FakeGrammarOptions{});
  EXPECT_EQ(refused(bad), "pooling");
  bad = good;
  bad.sampling.tokens_max = 1;
  EXPECT_EQ(refused(bad), "sampling.tokens_max");
  EXPECT_EQ(refused(Embed(Pooling::kLast, kContextMax + 1)), "prompt");
}

TEST_P(Embeddings, AreOfTheWeightsTheyBeganOn) {
  HashModel other(kVocabularySize, kContextMax, 4096, 4, GetParam());
  other.set_salt(99);
  Make({.sequences_max = 1, .prefill_rows_max = 50, .model_content = "old"});
  const Request begun = Embed(Pooling::kMean, 300), waiting = Embed(Pooling::kMean, 300);
  const Collector& first = Submit(begun);
  const Collector& second = Submit(waiting);
  engine_->Step();
  ASSERT_TRUE(engine_->SwapModel(other, "new", base::kNever).ok());
  RunDry();
  ExpectOracle(first.answer(), begun);
  ExpectSameAnswer(second.answer(), Oracle(other, *tokenizer_).Run(waiting, 0));
  EXPECT_NE(first.answer().embedding, second.answer().embedding);
}

INSTANTIATE_TEST_SUITE_P(Models, Embeddings, testing::Values(HashStateShape(), kNoReplay, kReplay),
                         [](const auto& given) {
                           if (given.param.window == 0) return "Pages";
                           return given.param.replay_rows == 0 ? "States" : "StatesWithReplay";
                         });

// ---- a model that gives none ----

class NoHidden final : public model::Model {
 public:
  NoHidden() { info_.hidden_width = 0; }
  const model::ModelInfo& info() const override { return info_; }
  uint32_t rows_max() const override { return hash_.rows_max(); }
  uint32_t logits_rows_max() const override { return hash_.logits_rows_max(); }
  void Forward(std::span<const model::SequenceRows> rows, std::span<float> logits) override {
    hash_.Forward(rows, logits);
  }

 private:
  HashModel hash_{kVocabularySize, kContextMax};
  model::ModelInfo info_ = hash_.info();
};

TEST(NoEmbeddings, OfAModelWithoutHiddenStates) {
  NoHidden model;
  base::ManualClock clock;
  const auto tokenizer = MakeTokenizer();
  const auto engine = Engine::Create(model, *tokenizer, clock, {}).value();
  Request request{.id = RequestId{1}, .prompt = {TokenId{1}}, .pooling = Pooling::kMean};
  request.sampling.tokens_max = 0;
  Collector sink(request);
  EXPECT_EQ(engine->Submit(request, sink).code(), base::Code::kUnsupported);
}

}  // namespace
}  // namespace plumb::engine
