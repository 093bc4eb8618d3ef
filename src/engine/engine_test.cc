// engine/engine_test.cc: what the Generator contract promises, one promise a test. That answers do
// not depend on what else runs: engine_exactness_test.cc.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/engine_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 600;

class EngineTest : public testing::Test {
 protected:
  void Make(const EngineOptions& options = {}) {
    auto engine = Engine::Create(model_, *tokenizer_, clock_, options);
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    engine_ = std::move(engine).value();
  }

  // Greedy and long enough that nothing ends by chance.
  Request Simple(uint32_t prompt = 10, uint32_t tokens_max = 50) {
    Request request{.id = RequestId{++last_id_}};
    request.prompt.assign(prompt, TokenId{65});
    request.sampling = {.temperature = 0, .ignore_end = true, .tokens_max = tokens_max};
    return request;
  }

  Collector& Submit(const Request& request) {
    sinks_.push_back(std::make_unique<Collector>(request));
    const base::Status status = engine_->Submit(request, *sinks_.back());
    EXPECT_TRUE(status.ok()) << status.ToString();
    return *sinks_.back();
  }

  base::Status Refusal(const Request& request) {
    Collector sink(request);
    sink.on_event = [] { ADD_FAILURE() << "a refused request's sink was called"; };
    return engine_->Submit(request, sink);
  }

  void RunDry() {
    while (engine_->Step()) {
    }
  }

  void ExpectIdle() {
    EXPECT_EQ(engine_->stats().pages_used, 0u);
    EXPECT_EQ(engine_->stats().running, 0u);
    EXPECT_EQ(engine_->stats().waiting, 0u);
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  HashModel model_{kVocabularySize, kContextMax};
  base::ManualClock clock_;
  std::vector<std::unique_ptr<Collector>> sinks_;
  std::unique_ptr<Engine> engine_;  // last: its end still calls the sinks
  uint64_t last_id_ = 0;
};

TEST_F(EngineTest, AnswersAndStopsAtTheGivenLength) {
  Make();
  const Collector& sink = Submit(Simple(10, 7));
  RunDry();
  const Answer& answer = sink.answer();
  ASSERT_TRUE(answer.finish);
  EXPECT_EQ(answer.finish->reason, FinishReason::kLength);
  EXPECT_EQ(answer.tokens.size(), 7u);
  EXPECT_EQ(answer.finish->prompt_tokens, 10u);
  EXPECT_EQ(answer.finish->completion_tokens, 7u);
  ExpectIdle();
}

TEST_F(EngineTest, AnEndTokenEndsTheAnswerUnlessIgnored) {
  Make();
  Request request = Simple();
  request.sampling.logit_bias = {{TokenId{kEndToken}, 100.0f}};
  request.sampling.ignore_end = false;
  const Collector& ended = Submit(request);
  request.id = RequestId{++last_id_};
  request.sampling.ignore_end = true;
  const Collector& ignored = Submit(request);
  RunDry();
  EXPECT_EQ(ended.answer().finish->reason, FinishReason::kStop);
  EXPECT_EQ(ended.answer().tokens, std::vector{TokenId{kEndToken}});
  EXPECT_EQ(ended.answer().text, "");
  EXPECT_EQ(ended.answer().finish->completion_tokens, 1u);
  EXPECT_EQ(ignored.answer().finish->reason, FinishReason::kLength);
  EXPECT_EQ(ignored.answer().tokens.size(), 50u);
}

TEST_F(EngineTest, AStopTokenEndsTheAnswerWithoutItsText) {
  Make();
  Request request = Simple();
  request.sampling.logit_bias = {{TokenId{'x'}, 100.0f}};
  request.sampling.stop_tokens = {TokenId{'x'}};
  const Collector& sink = Submit(request);
  RunDry();
  EXPECT_EQ(sink.answer().finish->reason, FinishReason::kStop);
  EXPECT_FALSE(sink.answer().finish->stop);
  EXPECT_EQ(sink.answer().text, "");
}

TEST_F(EngineTest, AnUnfinishedCharacterComesOutAtTheEnd) {
  Make();
  Request request = Simple(10, 2);
  request.sampling.logit_bias = {{TokenId{0xE2}, 100.0f}};  // the first of three bytes
  const Collector& sink = Submit(request);
  RunDry();
  EXPECT_EQ(sink.answer().text, "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_F(EngineTest, SamplesOfARequestDifferAndEachEndsOnce) {
  Make();
  Request request = Simple();
  request.samples = 5;
  request.sampling.temperature = 1;
  const Collector& sink = Submit(request);
  RunDry();
  EXPECT_TRUE(sink.Ended());
  EXPECT_NE(sink.answer(0).tokens, sink.answer(1).tokens);
  EXPECT_EQ(engine_->stats().samples_length, 5u);
  EXPECT_EQ(engine_->stats().prompt_tokens, 50u);
  EXPECT_EQ(engine_->stats().generated_tokens, 250u);
}

TEST_F(EngineTest, RefusesWhatIsOutOfRangeAndNamesTheField) {
  Make();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto refused = [&](const char* field, auto change) {
    Request request = Simple();
    change(request);
    const base::Status status = Refusal(request);
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument) << field;
    EXPECT_EQ(status.field(), field);
  };
  refused("prompt", [](Request& r) { r.prompt.clear(); });
  refused("prompt", [](Request& r) { r.prompt[3] = TokenId{kVocabularySize}; });
  refused("samples", [](Request& r) { r.samples = 0; });
  refused("samples", [](Request& r) { r.samples = kSamplesMax + 1; });
  for (const float bad : {-0.1f, 2.1f, nan}) {
    refused("sampling.temperature", [=](Request& r) { r.sampling.temperature = bad; });
    refused("sampling.repetition_penalty",
            [=](Request& r) { r.sampling.repetition_penalty = bad; });
  }
  for (const float bad : {0.0f, 1.1f, nan}) {
    refused("sampling.top_p", [=](Request& r) { r.sampling.top_p = bad; });
  }
  for (const float bad : {-0.1f, 1.1f, nan}) {
    refused("sampling.min_p", [=](Request& r) { r.sampling.min_p = bad; });
  }
  for (const float bad : {-2.1f, 2.1f, nan, HUGE_VALF}) {
    refused("sampling.presence_penalty", [=](Request& r) { r.sampling.presence_penalty = bad; });
    refused("sampling.frequency_penalty", [=](Request& r) { r.sampling.frequency_penalty = bad; });
  }
  for (const LogitBias bad : {LogitBias{TokenId{kVocabularySize}, 0}, LogitBias{TokenId{1}, 101},
                              LogitBias{TokenId{1}, nan}}) {
    refused("sampling.logit_bias", [=](Request& r) { r.sampling.logit_bias = {bad}; });
  }
  refused("sampling.logit_bias",
          [](Request& r) { r.sampling.logit_bias.resize(kLogitBiasMax + 1); });
  refused("sampling.stop", [](Request& r) { r.sampling.stop = {""}; });
  refused("sampling.stop", [](Request& r) { r.sampling.stop.resize(kStopStringsMax + 1, "x"); });
  refused("sampling.stop",
          [](Request& r) { r.sampling.stop = {std::string(kStopStringBytesMax + 1, 'x')}; });
  refused("sampling.stop_tokens",
          [](Request& r) { r.sampling.stop_tokens = {TokenId{UINT32_MAX}}; });
  refused("sampling.stop_tokens",
          [](Request& r) { r.sampling.stop_tokens.resize(kStopTokensMax + 1); });
  refused("sampling.top_logprobs", [](Request& r) { r.sampling.top_logprobs = 1; });
  refused("sampling.top_logprobs", [](Request& r) {
    r.sampling.logprobs = true;
    r.sampling.top_logprobs = kTopLogprobsMax + 1;
  });
  refused("sampling.tokens_max", [](Request& r) { r.sampling.tokens_max = 0; });
  refused("speculation", [](Request& r) { r.speculation = Speculation::kDraft; });
  EXPECT_FALSE(engine_->Step());
}

TEST_F(EngineTest, RefusesWhatDoesNotFitTheContextWithBothCounts) {
  Make();
  for (const uint32_t tokens_max : {kContextMax - 9, UINT32_MAX}) {
    const base::Status status = Refusal(Simple(10, tokens_max));
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
    EXPECT_EQ(status.reason(), "context_length_exceeded");
    EXPECT_NE(status.message().find(" 600 "), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("10 in the prompt"), std::string::npos) << status.message();
  }
  const Collector& sink = Submit(Simple(10, kContextMax - 10));
  RunDry();
  EXPECT_EQ(sink.answer().tokens.size(), kContextMax - 10);
}

TEST_F(EngineTest, AContextThatThePagesCannotHoldIsRefused) {
  Make({.kv_budget_bytes = 2 * kvcache::PagePool::kAlignment});
  EXPECT_EQ(engine_->context_max(), 2 * model::kPageTokens);
  EXPECT_EQ(Refusal(Simple(250, 7)).reason(), "context_length_exceeded");
  const Collector& sink = Submit(Simple(250, 6));
  RunDry();
  EXPECT_EQ(sink.answer().finish->reason, FinishReason::kLength);
}

TEST_F(EngineTest, RefusesOptionsOutOfRange) {
  const auto field = [&](const EngineOptions& options) {
    const auto engine = Engine::Create(model_, *tokenizer_, clock_, options);
    EXPECT_FALSE(engine.ok());
    EXPECT_EQ(engine.status().code(), base::Code::kInvalidArgument);
    return engine.status().field();
  };
  EXPECT_EQ(field({.kv_budget_bytes = 100}), "kv_budget_bytes");
  EXPECT_EQ(field({.sequences_max = 0}), "sequences_max");
  EXPECT_EQ(field({.waiting_max = kSamplesMax - 1}), "waiting_max");
  EXPECT_EQ(field({.waiting_batch_max = kSamplesMax - 1}), "waiting_batch_max");
  EXPECT_EQ(field({.waiting_max = 20, .waiting_batch_max = 21}), "waiting_batch_max");
  EXPECT_EQ(field({.rows_max = 0}), "rows_max");
  EXPECT_EQ(field({.prefill_rows_max = 0}), "prefill_rows_max");
  EXPECT_EQ(field({.speculation = Speculation::kServer}), "speculation");
  EXPECT_EQ(field({.draft_model = &model_}), "draft_model");
}

TEST_F(EngineTest, RefusesAVocabularyThatIsTooLarge) {
  HashModel model(kVocabularySizeMax + 1, kContextMax);
  const auto engine = Engine::Create(model, *tokenizer_, clock_, {});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), base::Code::kUnsupported);
}

TEST_F(EngineTest, RefusesAnIdThatIsLive) {
  Make();
  Request request = Simple();
  Submit(request);
  EXPECT_EQ(Refusal(request).field(), "id");
  RunDry();
  Submit(request);
  RunDry();
}

TEST_F(EngineTest, RefusesWithRetryAfterWhenTheQueueIsFull) {
  Make({.sequences_max = 1, .waiting_max = 16});
  Submit(Simple());
  engine_->Step();  // it runs, so it does not wait
  for (int i = 0; i < 16; ++i) Submit(Simple());
  const base::Status status = Refusal(Simple());
  EXPECT_EQ(status.code(), base::Code::kOverloaded);
  EXPECT_GE(status.retry_after_ms(), RetryAfter::kLeastMs);
  EXPECT_LE(status.retry_after_ms(), RetryAfter::kMostMs);
  EXPECT_EQ(engine_->stats().requests_refused, 1u);
  RunDry();
  Submit(Simple());
  RunDry();
  ExpectIdle();
}

TEST_F(EngineTest, BatchRequestsLeaveRoomInTheQueueForOthers) {
  Make({.sequences_max = 1, .waiting_max = 40});
  Submit(Simple());
  engine_->Step();
  const auto batch = [&] {
    Request request = Simple();
    request.priority = Priority::kBatch;
    return request;
  };
  std::vector<RequestId> waiting;
  for (int i = 0; i < 30; ++i) {
    waiting.push_back(Submit(batch()).id());
  }
  const base::Status status = Refusal(batch());
  EXPECT_EQ(status.code(), base::Code::kOverloaded);
  EXPECT_NE(status.message().find("30 answers of batch priority"), std::string::npos)
      << status.message();
  EXPECT_GE(status.retry_after_ms(), RetryAfter::kLeastMs);
  for (int i = 0; i < 10; ++i) Submit(Simple());
  EXPECT_EQ(Refusal(Simple()).code(), base::Code::kOverloaded) << "now it is full";
  // Who leaves makes room, for both.
  for (size_t i = 0; i < 5; ++i) engine_->Cancel(waiting[i]);
  engine_->Step();
  for (int i = 0; i < 5; ++i) Submit(batch());
  EXPECT_EQ(Refusal(batch()).code(), base::Code::kOverloaded);
  RunDry();
  Submit(batch());
  RunDry();
  ExpectIdle();
}

TEST_F(EngineTest, CancelEndsARequestWithinOneStepAndFreesItsPages) {
  Make({.sequences_max = 1});
  const Request running = Simple(), waiting = Simple();
  const Collector& first = Submit(running);
  const Collector& second = Submit(waiting);
  for (int i = 0; i < 5; ++i) engine_->Step();
  EXPECT_GT(engine_->stats().pages_used, 0u);
  engine_->Cancel(waiting.id);
  engine_->Cancel(running.id);
  engine_->Cancel(RequestId{999});  // nobody's
  engine_->Step();
  EXPECT_TRUE(first.Ended());
  EXPECT_TRUE(second.Ended());
  EXPECT_EQ(first.answer().finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(first.answer().finish->completion_tokens, 5u);
  EXPECT_EQ(second.answer().finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(second.answer().finish->completion_tokens, 0u);
  ExpectIdle();
  EXPECT_FALSE(engine_->Step());
}

TEST_F(EngineTest, CancellingWhatWaitsMakesRoom) {
  Make({.sequences_max = 1, .waiting_max = 16});
  Submit(Simple());
  engine_->Step();
  for (int round = 0; round < 3; ++round) {
    std::vector<RequestId> waiting;
    for (int i = 0; i < 16; ++i) {
      waiting.push_back(RequestId{last_id_ + 1});
      Submit(Simple());
    }
    EXPECT_EQ(Refusal(Simple()).code(), base::Code::kOverloaded);
    for (const RequestId id : waiting) engine_->Cancel(id);
    engine_->Step();
  }
  RunDry();
  ExpectIdle();
}

TEST_F(EngineTest, ASinkMayCancelItsRequest) {
  Make();
  const Request request = Simple();
  Collector& sink = Submit(request);
  int events = 0;
  sink.on_event = [&] {
    if (++events == 3) engine_->Cancel(request.id);
  };
  RunDry();
  EXPECT_EQ(sink.answer().finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(sink.answer().tokens.size(), 3u);
}

TEST_F(EngineTest, ADeadlineEndsARequestThatRunsOrWaits) {
  Make({.sequences_max = 1});
  Request running = Simple(), waiting = Simple();
  running.deadline = waiting.deadline = clock_.Now() + base::Milliseconds(100);
  const Collector& first = Submit(running);
  const Collector& second = Submit(waiting);
  engine_->Step();
  clock_.Advance(base::Milliseconds(99));
  engine_->Step();
  EXPECT_FALSE(first.Ended());
  clock_.Advance(base::Milliseconds(1));
  engine_->Step();
  for (const Collector* sink : {&first, &second}) {
    ASSERT_TRUE(sink->Ended());
    EXPECT_EQ(sink->answer().finish->reason, FinishReason::kError);
    EXPECT_EQ(sink->answer().finish->status.code(), base::Code::kDeadline);
  }
  ExpectIdle();
}

TEST_F(EngineTest, LogitsThatAreNotFiniteEndThatSampleOnly) {
  Make();
  int rows = 0;
  model_.after_row = [&](std::span<float> row) {
    // The second row of the fourth step: two sequences sample in each.
    if (++rows == 8) row[5] = std::numeric_limits<float>::quiet_NaN();
  };
  const Collector& good = Submit(Simple());
  const Collector& bad = Submit(Simple());
  RunDry();
  EXPECT_EQ(good.answer().finish->reason, FinishReason::kLength);
  EXPECT_EQ(bad.answer().finish->reason, FinishReason::kError);
  EXPECT_EQ(bad.answer().finish->status.code(), base::Code::kInternal);
  EXPECT_EQ(bad.answer().tokens.size(), 3u);
  ExpectIdle();
}

TEST_F(EngineTest, DrainFinishesWhatRunsAndRefusesTheRest) {
  Make({.sequences_max = 2, .retry_after_ms = 500});
  for (int i = 0; i < 5; ++i) Submit(Simple());
  engine_->Start();
  EXPECT_TRUE(engine_->Healthy());
  engine_->Drain(base::kNever);
  for (const auto& sink : sinks_) {
    ASSERT_TRUE(sink->Ended());
    EXPECT_EQ(sink->answer().finish->reason, FinishReason::kLength);
  }
  const base::Status status = Refusal(Simple());
  EXPECT_EQ(status.code(), base::Code::kUnavailable);
  EXPECT_EQ(status.retry_after_ms(), 500u);
  EXPECT_FALSE(engine_->Healthy());
  engine_->Stop();  // again: no harm
}

TEST_F(EngineTest, DrainCancelsAtItsDeadline) {
  model_.before_forward = [&] { clock_.Advance(base::Milliseconds(1)); };
  Make({.sequences_max = 1});
  const Collector& first = Submit(Simple(10, 10));
  const Collector& second = Submit(Simple(10, 10));
  engine_->Drain(clock_.Now() + base::Milliseconds(15));
  ASSERT_TRUE(first.Ended() && second.Ended());
  EXPECT_EQ(first.answer().finish->reason, FinishReason::kLength);
  EXPECT_EQ(second.answer().finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(second.answer().tokens.size(), 5u);
}

TEST_F(EngineTest, StopCancelsEverything) {
  Make();
  Collector& sink = Submit(Simple(10, 500));
  Milestones events;
  sink.on_event = [&] { events.Pass(); };
  model_.before_forward = [&] {
    // Holds the answer in its middle until Stop has been asked for.
    if (sink.TokensSeen() < 100) return;
    while (engine_->Healthy()) {
    }
  };
  engine_->Start();
  events.AwaitAtLeast(1);
  engine_->Stop();
  ASSERT_TRUE(sink.Ended());
  EXPECT_EQ(sink.answer().finish->reason, FinishReason::kCancelled);
  ExpectIdle();
}

TEST_F(EngineTest, DestroyingAnEngineEndsWhatWasSubmitted) {
  Make();
  const Collector& sink = Submit(Simple());
  engine_.reset();
  ASSERT_TRUE(sink.Ended());
  EXPECT_EQ(sink.answer().finish->reason, FinishReason::kCancelled);
}

TEST_F(EngineTest, APauseWithoutWorkIsNoFault) {
  Make({.watchdog = base::Milliseconds(100)});
  engine_->Start();
  clock_.Advance(base::Seconds(3600));
  EXPECT_TRUE(engine_->Healthy());
  Submit(Simple()).WaitForEnd();
  EXPECT_TRUE(engine_->Healthy());
}

TEST_F(EngineTest, RecordsLatencies) {
  telemetry::EngineMetrics metrics;
  Make({.metrics = &metrics});
  model_.before_forward = [&] { clock_.Advance(base::Milliseconds(10)); };
  Submit(Simple(10, 5));
  RunDry();
  EXPECT_EQ(metrics.first_token_seconds.snapshot().count, 1u);
  EXPECT_NEAR(metrics.first_token_seconds.snapshot().sum, 0.010, 1e-9);
  EXPECT_EQ(metrics.inter_token_seconds.snapshot().count, 4u);
  EXPECT_NEAR(metrics.inter_token_seconds.snapshot().sum, 0.040, 1e-9);
  EXPECT_EQ(metrics.step_seconds.snapshot().count, 5u);
  EXPECT_EQ(engine_->stats().steps, 5u);
  EXPECT_EQ(engine_->stats().computed_rows, 14u);
  EXPECT_NEAR(engine_->stats().busy_seconds, 0.050, 1e-9);
}

}  // namespace
}  // namespace plumb::engine
