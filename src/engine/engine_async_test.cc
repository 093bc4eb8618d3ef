// engine/engine_async_test.cc: the engine's thread and the host's beside each other. What one must
// not wait for the other for, what it must, and what becomes of requests when the engine hangs.
#include <gtest/gtest.h>

#include <atomic>

#include "base/affinity.h"
#include "base/testing/allocation_count.h"
#include "engine/engine_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 600;

class Async : public testing::Test {
 protected:
  void Make(const EngineOptions& options = {}) {
    engine_ = Engine::Create(model_, *tokenizer_, clock_, options).value();
    model_.before_forward = [this] {
      forwards_.Pass();
      if (on_forward_) on_forward_();
    };
  }

  Request Simple(uint32_t tokens_max = 40) {
    Request request{.id = RequestId{++last_id_}, .prompt = {TokenId{65}, TokenId{66}}};
    request.sampling = {.temperature = 0, .ignore_end = true, .tokens_max = tokens_max};
    return request;
  }

  Collector& Add(const Request& request) {
    sinks_.push_back(std::make_unique<Collector>(request));
    return *sinks_.back();
  }
  Collector& Submit(const Request& request) {
    Collector& sink = Add(request);
    const base::Status status = engine_->Submit(request, sink);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return sink;
  }

  void ExpectExact(const Request& request, const Collector& sink) {
    ExpectSameAnswer(sink.answer(), Oracle(model_, *tokenizer_).Run(request, 0));
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  HashModel model_{kVocabularySize, kContextMax};
  base::ManualClock clock_;
  Milestones forwards_;
  std::function<void()> on_forward_;
  std::vector<std::unique_ptr<Collector>> sinks_;
  std::unique_ptr<Engine> engine_;  // last: its end still calls the sinks
  uint64_t last_id_ = 0;
};

TEST_F(Async, EventsAreMadeWhileTheNextStepsAreComputed) {
  EngineTrace trace(10000);
  Make({.speculation = Speculation::kOff, .trace = &trace});
  const Request request = Simple();
  Collector& sink = Add(request);
  uint64_t events = 0;
  sink.on_event = [&] {
    // A synchronous engine would never come here again.
    if (++events < 30) forwards_.AwaitAtLeast(events + 2);
    clock_.Advance(base::Milliseconds(1));
    // Nor may it run away: what is on its way is bounded.
    EXPECT_LE(forwards_.passed(), events + kHandOversMax + 1);
  };
  ASSERT_TRUE(engine_->Submit(request, sink).ok());
  engine_->Start();
  sink.WaitForEnd();
  engine_->Stop();
  ExpectExact(request, sink);
  uint64_t forwards = 0, publishes = 0;
  for (const TraceSpan& span : trace.Spans()) {
    forwards += span.phase == TracePhase::kForward;
    publishes += span.phase == TracePhase::kPublish;
  }
  EXPECT_EQ(forwards, 40u);
  EXPECT_EQ(publishes, 40u);
  engine_.reset();  // before the trace
}

// It computes beside the pool's workers, so it is bound like them.
TEST_F(Async, TheEnginesThreadIsThePoolsThreadZero) {
  const std::vector<uint32_t> all = base::AllowedProcessors();
  if (all.size() < 2) GTEST_SKIP() << "one processor: all threads share it";
  tensor::ThreadPool pool({.threads = 2, .pin = true});
  Make({.pool = &pool});
  std::vector<uint32_t> allowed;
  on_forward_ = [&] { allowed = base::AllowedProcessors(); };
  engine_->Start();
  Submit(Simple(3)).WaitForEnd();
  engine_->Stop();
  EXPECT_EQ(allowed, std::vector<uint32_t>{all[0]});
  EXPECT_EQ(base::AllowedProcessors(), all) << "nobody else is bound";
  engine_.reset();  // before the pool
}

TEST_F(Async, AStepAllocatesNothingOnTheEnginesThread) {
  tensor::ThreadPool pool({.threads = 2});
  Make({.pool = &pool, .speculation = Speculation::kNgram});
  Request request = Simple(100);
  request.sampling.temperature = 1;
  request.sampling.frequency_penalty = 0.5f;
  request.sampling.logprobs = true;
  request.sampling.top_logprobs = 5;
  request.sampling.top_p = 0.9f;
  Collector& sink = Add(request);
  Milestones started;
  uint64_t events = 0;
  sink.on_event = [&] {
    started.AwaitAtLeast(1);  // whoever starts the engine makes threads until then
    // The host stands still here, so whatever is allocated is so by the others.
    if (++events < 10 || events > 80) return;
    const uint64_t step = forwards_.passed();
    const uint64_t before = base::testing::allocation_count.load();
    forwards_.AwaitAtLeast(std::min(step + 1, events + kHandOversMax - 1));
    EXPECT_EQ(base::testing::allocation_count.load(), before) << "step " << step;
  };
  ASSERT_TRUE(engine_->Submit(request, sink).ok());
  engine_->Start();
  started.Pass();
  sink.WaitForEnd();
  engine_->Stop();
  ExpectExact(request, sink);
}

// A grammar whose masks are not ready before the forward has begun.
class LateGrammar final : public text::Grammar {
 public:
  LateGrammar(const FakeGrammarOptions& options, Milestones& forwards)
      : options_(options), forwards_(forwards) {}
  std::unique_ptr<text::GrammarState> NewState() const override {
    return std::make_unique<State>(options_, forwards_);
  }

 private:
  class State final : public text::GrammarState {
   public:
    State(const FakeGrammarOptions& options, Milestones& forwards)
        : fake_(options), forwards_(forwards) {}
    base::Status FillMask(std::span<uint32_t> mask) override {
      forwards_.AwaitAtLeast(++masks_);
      return fake_.FillMask(mask);
    }
    base::Status Accept(TokenId token) override { return fake_.Accept(token); }
    void Rollback(uint32_t tokens) override { fake_.Rollback(tokens); }
    uint32_t CountAllowed(std::span<const TokenId>) override { return 0; }
    void AppendForced(uint32_t, std::vector<TokenId>&) override {}
    bool Complete() override { return fake_.Complete(); }

   private:
    FakeGrammarState fake_;
    Milestones& forwards_;
    uint64_t masks_ = 0;
  };

  const FakeGrammarOptions options_;
  Milestones& forwards_;
};

TEST_F(Async, MasksAreFilledBesideTheForwardAndAwaitedAfterIt) {
  Make({.speculation = Speculation::kOff});
  Request request = Simple();
  request.sampling.ignore_end = false;
  const FakeGrammarOptions grammar{.seed = 5, .end_token = kEndToken, .tokens_max = 30};
  request.grammar = std::make_shared<LateGrammar>(grammar, forwards_);
  Collector& sink = Submit(request);
  engine_->Start();
  sink.WaitForEnd();
  engine_->Stop();
  request.grammar = std::make_shared<FakeGrammar>(grammar);
  ExpectExact(request, sink);
}

TEST_F(Async, AfterAStopStringNothingIsPublishedAndTheSampleIsTakenOut) {
  Make({.speculation = Speculation::kOff});
  Request request = Simple(200);
  const std::string whole = Oracle(model_, *tokenizer_).Run(request, 0).text;
  request.sampling.stop = {whole.substr(10, 4)};
  const uint64_t tokens = Oracle(model_, *tokenizer_).Run(request, 0).tokens.size();
  Collector& sink = Add(request);
  // The engine is always ahead of what is published, so it has sampled beyond the stop.
  uint64_t events = 0;
  sink.on_event = [&] {
    if (++events < tokens) forwards_.AwaitAtLeast(events + 2);
  };
  ASSERT_TRUE(engine_->Submit(request, sink).ok());
  engine_->Start();
  sink.WaitForEnd();
  engine_->Drain(base::kNever);
  ExpectExact(request, sink);
  EXPECT_LT(forwards_.passed(), events + 2 * kHandOversMax) << "it went on";
  EXPECT_EQ(engine_->stats().pages_used, 0u);
  EXPECT_EQ(engine_->stats().samples_stop, 1u);
}

TEST_F(Async, TheLastEventFreesTheId) {
  Make();
  engine_->Start();
  for (int i = 0; i < 300; ++i) {
    Request request = Simple(static_cast<uint32_t>(1 + i % 3));
    request.id = RequestId{1};
    Submit(request).WaitForEnd();
  }
  engine_->Drain(base::kNever);
  EXPECT_EQ(engine_->stats().samples_length, 300u);
}

class Watchdog : public Async, public testing::WithParamInterface<bool> {};

TEST_P(Watchdog, FailsWhatIsLiveOnceWhenTheEngineHangs) {
  Make({.sequences_max = 1, .synchronous = GetParam(), .watchdog = base::Milliseconds(100)});
  Milestones released;
  on_forward_ = [&] {
    if (forwards_.passed() == 3) released.AwaitAtLeast(1);
  };
  engine_->Start();
  Request running = Simple(), waiting = Simple();
  waiting.samples = 3;
  Collector& first = Submit(running);
  Collector& second = Submit(waiting);
  forwards_.AwaitAtLeast(3);
  Collector& third = Submit(Simple());  // has not even been received
  EXPECT_TRUE(engine_->Healthy());
  clock_.Advance(base::Milliseconds(101));
  EXPECT_FALSE(engine_->Healthy());
  for (Collector* sink : {&first, &second, &third}) {
    sink->WaitForEnd();
    EXPECT_EQ(sink->answer().finish->reason, FinishReason::kError);
    EXPECT_EQ(sink->answer().finish->status.code(), base::Code::kUnavailable);
    EXPECT_EQ(sink->answer().finish->status.reason(), "engine_stalled");
  }
  EXPECT_EQ(first.answer().tokens.size(), 2u) << "what it had stays";
  EXPECT_EQ(second.answer(2).finish->reason, FinishReason::kError);
  EXPECT_EQ(engine_->stats().requests_failed_by_watchdog, 3u);

  // It hangs still: red, and nothing is taken.
  EXPECT_FALSE(engine_->Healthy());
  const Request refused = Simple();
  EXPECT_EQ(engine_->Submit(refused, Add(refused)).code(), base::Code::kUnavailable);

  // It goes on: nothing more comes of what has failed, and all is as it was.
  released.Pass();
  while (!engine_->Healthy()) {
  }
  const Request next = Simple();
  Collector& sink = Submit(next);
  sink.WaitForEnd();
  ExpectExact(next, sink);
  engine_->Drain(base::kNever);
  EXPECT_EQ(engine_->stats().pages_used, 0u);
  EXPECT_EQ(engine_->stats().waiting, 0u);
  EXPECT_EQ(engine_->stats().samples_error, 5u);
}

INSTANTIATE_TEST_SUITE_P(Modes, Watchdog, testing::Bool());

// A grammar that calls out before each of its masks.
class CallingGrammar final : public text::Grammar {
 public:
  explicit CallingGrammar(std::function<void()> before_mask)
      : before_mask_(std::move(before_mask)) {}
  std::unique_ptr<text::GrammarState> NewState() const override {
    return std::make_unique<State>(before_mask_);
  }

 private:
  class State final : public text::GrammarState {
   public:
    explicit State(const std::function<void()>& before_mask) : before_mask_(before_mask) {}
    base::Status FillMask(std::span<uint32_t> mask) override {
      before_mask_();
      return inner_.FillMask(mask);
    }
    base::Status Accept(TokenId token) override { return inner_.Accept(token); }
    void Rollback(uint32_t tokens) override { inner_.Rollback(tokens); }
    uint32_t CountAllowed(std::span<const TokenId> tokens) override {
      return inner_.CountAllowed(tokens);
    }
    void AppendForced(uint32_t max, std::vector<TokenId>& out) override {
      inner_.AppendForced(max, out);
    }
    bool Complete() override { return inner_.Complete(); }

   private:
    const std::function<void()>& before_mask_;
    FakeGrammarState inner_{{.seed = 3}};
  };
  const std::function<void()> before_mask_;
};

TEST_F(Async, AMaskThatNeverComesFailsWhatIsLive) {
  Make({.watchdog = base::Milliseconds(100)});
  Milestones asked, released;
  Request masked = Simple(), plain = Simple();
  masked.sampling.ignore_end = false;
  masked.grammar = std::make_shared<CallingGrammar>([&] {
    asked.Pass();
    released.AwaitAtLeast(1);
  });
  Collector& first = Submit(masked);
  Collector& second = Submit(plain);
  engine_->Start();
  asked.AwaitAtLeast(1);
  EXPECT_TRUE(engine_->Healthy());
  while (!first.Ended() || !second.Ended()) clock_.Advance(base::Milliseconds(101));
  for (const Collector* sink : {&first, &second}) {
    EXPECT_EQ(sink->answer().finish->status.reason(), "engine_stalled");
  }
  EXPECT_FALSE(engine_->Healthy());
  const Request refused = Simple();
  EXPECT_EQ(engine_->Submit(refused, Add(refused)).code(), base::Code::kUnavailable);

  released.Pass();
  while (!engine_->Healthy()) {
  }
  const Request next = Simple();
  Collector& sink = Submit(next);
  sink.WaitForEnd();
  ExpectExact(next, sink);
  engine_->Drain(base::kNever);
  EXPECT_EQ(engine_->stats().pages_used, 0u);
  EXPECT_EQ(engine_->stats().requests_failed_by_watchdog, 2u);
}

// Waits in its last event.
class HangingSink final : public EventSink {
 public:
  void OnEvent(TokenEvent event) override {
    if (!event.finish) return;
    entered.Pass();
    released.AwaitAtLeast(1);
  }
  Milestones entered, released;
};

TEST_F(Async, ASinkThatNeverReturnsTurnsItRedThoughTheEngineHasNothingToDo) {
  Make({.watchdog = base::Milliseconds(100)});
  HangingSink hanging;
  ASSERT_TRUE(engine_->Submit(Simple(3), hanging).ok());
  engine_->Start();
  hanging.entered.AwaitAtLeast(1);
  EXPECT_TRUE(engine_->Healthy());
  while (engine_->Healthy()) clock_.Advance(base::Milliseconds(101));
  const Request refused = Simple();
  EXPECT_EQ(engine_->Submit(refused, Add(refused)).code(), base::Code::kUnavailable);
  EXPECT_EQ(engine_->stats().requests_failed_by_watchdog, 0u) << "nobody else is here";

  hanging.released.Pass();
  while (!engine_->Healthy()) {
  }
  const Request next = Simple();
  Collector& sink = Submit(next);
  sink.WaitForEnd();
  ExpectExact(next, sink);
  engine_->Drain(base::kNever);
}

}  // namespace
}  // namespace plumb::engine
