// engine/engine_exactness_test.cc: whatever runs beside it, a request gets the answer it gets
// alone. The random workloads print their seed; a failing one replays by itself.
#include <gtest/gtest.h>

#include "engine/engine_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 600;

struct Submitted {
  Request request;
  std::unique_ptr<Collector> sink;
  bool cancelled = false;
};

class Exactness : public testing::Test {
 protected:
  std::unique_ptr<Engine> MakeEngine(HashModel& model, const EngineOptions& options) {
    auto engine = Engine::Create(model, *tokenizer_, clock_, options);
    CHECK(engine.ok()) << engine.status().ToString();
    return std::move(engine).value();
  }

  void ExpectOracle(const HashModel& model, const Submitted& submitted) {
    const Oracle oracle(model, *tokenizer_);
    for (uint32_t sample = 0; sample < submitted.request.samples; ++sample) {
      SCOPED_TRACE(testing::Message() << "request " << static_cast<uint64_t>(submitted.request.id)
                                      << " sample " << sample);
      const Answer& answer = submitted.sink->answer(sample);
      const Answer expected = oracle.Run(submitted.request, sample);
      if (!answer.finish || answer.finish->reason != FinishReason::kCancelled) {
        ExpectSameAnswer(answer, expected);
        continue;
      }
      // Cut short, but what came before is the same.
      EXPECT_TRUE(submitted.cancelled);
      ASSERT_LE(answer.tokens.size(), expected.tokens.size());
      EXPECT_TRUE(std::equal(answer.tokens.begin(), answer.tokens.end(), expected.tokens.begin()));
    }
  }

  void ExpectIdle(const Engine& engine) {
    EXPECT_EQ(engine.stats().pages_used, 0u);
    EXPECT_EQ(engine.stats().running, 0u);
    EXPECT_EQ(engine.stats().waiting, 0u);
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  base::ManualClock clock_;
};

// Steps an engine through `count` requests that arrive and are cancelled at random moments.
class Workload {
 public:
  Workload(base::Rng& rng, Engine& engine, uint32_t count, uint32_t tokens_max)
      : rng_(rng), engine_(engine), count_(count), tokens_max_(tokens_max) {}

  std::vector<Submitted> Run(bool with_cancels) {
    bool busy = true;
    while (busy || all_.size() < count_) {
      if (all_.size() < count_ && rng_.Below(2) == 0) SubmitOne();
      if (with_cancels && !all_.empty() && rng_.Below(10) == 0) {
        Submitted& victim = all_[rng_.Below(all_.size())];
        victim.cancelled = victim.cancelled || !victim.sink->Ended();
        engine_.Cancel(victim.request.id);
      }
      busy = engine_.Step();
      CHECK(++steps_ < 1'000'000) << "no end";
    }
    return std::move(all_);
  }

 private:
  void SubmitOne() {
    const uint32_t prompt = static_cast<uint32_t>(1 + rng_.Below(rng_.Below(4) == 0 ? 300 : 60));
    const uint64_t tokens_max = std::min(tokens_max_, engine_.context_max() - prompt);
    Request request = RandomRequest(rng_, all_.size() + 1, prompt,
                                    static_cast<uint32_t>(1 + rng_.Below(tokens_max)));
    if (tokens_max_ > model::kPageTokens) request.sampling.stop.clear();
    if (tokens_max_ > model::kPageTokens) request.sampling.ignore_end = true;
    auto sink = std::make_unique<Collector>(request);
    const base::Status status = engine_.Submit(request, *sink);
    if (status.code() == base::Code::kOverloaded) return;  // later again
    CHECK(status.ok()) << status.ToString();
    all_.push_back({std::move(request), std::move(sink)});
  }

  base::Rng& rng_;
  Engine& engine_;
  const uint32_t count_, tokens_max_;
  uint32_t steps_ = 0;
  std::vector<Submitted> all_;
};

TEST_F(Exactness, AnyMixOfBatchChunksPreemptionAndCancelsGivesTheAnswersOfEachAlone) {
  uint64_t stopped = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    HashModel model(kVocabularySize, kContextMax);
    EngineOptions options;
    options.kv_budget_bytes = (6 + rng.Below(20)) * kvcache::PagePool::kAlignment;
    options.sequences_max = static_cast<uint32_t>(1 + rng.Below(20));
    options.rows_max = options.sequences_max + static_cast<uint32_t>(rng.Below(200));
    options.prefill_rows_max = static_cast<uint32_t>(1 + rng.Below(options.rows_max));
    options.waiting_max = static_cast<uint32_t>(16 + rng.Below(30));
    const auto engine = MakeEngine(model, options);
    const auto all = Workload(rng, *engine, 30, 60).Run(seed % 3 == 0);
    for (const Submitted& submitted : all) ExpectOracle(model, submitted);
    ExpectIdle(*engine);
    stopped += engine->stats().samples_stop;
    if (HasFailure()) return;
  }
  EXPECT_GT(stopped, 100u);  // the workloads do meet stops
}

TEST_F(Exactness, PreemptionAndRecomputingChangeNothing) {
  uint64_t preemptions = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    HashModel model(kVocabularySize, kContextMax);
    EngineOptions options;
    // Answers of up to four pages in a pool of five to eight: they run out in the middle.
    options.kv_budget_bytes = (5 + rng.Below(4)) * kvcache::PagePool::kAlignment;
    options.prefill_rows_max = static_cast<uint32_t>(10 + rng.Below(200));
    const auto engine = MakeEngine(model, options);
    const auto all = Workload(rng, *engine, 12, 450).Run(seed % 3 == 0);
    for (const Submitted& submitted : all) ExpectOracle(model, submitted);
    ExpectIdle(*engine);
    preemptions += engine->stats().preemptions;
    if (HasFailure()) return;
  }
  EXPECT_GT(preemptions, 10u);  // the workloads do run out of pages
}

TEST_F(Exactness, SixtyFourConcurrentStreamsOnTheEnginesThread) {
  HashModel model(kVocabularySize, kContextMax);
  EngineOptions options;
  options.kv_budget_bytes = 100 * kvcache::PagePool::kAlignment;  // too few for all at once
  const auto engine = MakeEngine(model, options);
  base::Rng rng(64);
  std::vector<Submitted> all;
  for (uint64_t id = 1; id <= 64; ++id) {
    Request request = RandomRequest(rng, id, static_cast<uint32_t>(1 + rng.Below(300)), 100);
    request.samples = 1;
    auto sink = std::make_unique<Collector>(request);
    all.push_back({std::move(request), std::move(sink)});
  }
  engine->Start();
  {
    std::vector<base::Thread> submitters;
    for (size_t part = 0; part < 4; ++part) {
      submitters.emplace_back("submitter", [&, part] {
        for (size_t i = part; i < all.size(); i += 4) {
          EXPECT_TRUE(engine->Submit(all[i].request, *all[i].sink).ok());
        }
      });
    }
    for (base::Thread& submitter : submitters) submitter.Join();
  }
  for (const Submitted& submitted : all) submitted.sink->WaitForEnd();
  engine->Drain(base::kNever);
  for (const Submitted& submitted : all) ExpectOracle(model, submitted);
  ExpectIdle(*engine);
}

TEST_F(Exactness, AStopStringAcrossTokensCutsTheTextAndLeaksNothing) {
  HashModel model(kVocabularySize, kContextMax);
  const auto engine = MakeEngine(model, {});
  const Oracle oracle(model, *tokenizer_);
  base::Rng rng(5);
  uint64_t id = 0;
  for (int round = 0; round < 50; ++round) {
    Request request{.id = RequestId{++id}};
    request.prompt = {TokenId{static_cast<uint32_t>(rng.Below(256))}};
    request.sampling = {.temperature = 0, .ignore_end = true, .tokens_max = 40};
    const std::string whole = oracle.Run(request, 0).text;
    ASSERT_GT(whole.size(), 20u);
    const size_t begin = rng.Below(whole.size() - 6);
    request.sampling.stop = {"never there", whole.substr(begin, 2 + rng.Below(5))};
    Submitted submitted{request, std::make_unique<Collector>(request)};
    ASSERT_TRUE(engine->Submit(request, *submitted.sink).ok());
    while (engine->Step()) {
    }
    ExpectOracle(model, submitted);
    const Answer& answer = submitted.sink->answer();
    EXPECT_EQ(answer.finish->stop, request.sampling.stop[1]);
    EXPECT_EQ(answer.text, whole.substr(0, whole.find(request.sampling.stop[1])));
  }
}

// What lets another engine take over in the middle (DESIGN, "Recompute"): noise goes by position.
TEST_F(Exactness, AnAnswerGoesOnFromItsOwnBeginning) {
  HashModel model(kVocabularySize, kContextMax);
  const Oracle oracle(model, *tokenizer_);
  Request request{.id = RequestId{1}, .prompt = {TokenId{70}, TokenId{71}}};
  request.sampling = {.temperature = 0.8f, .ignore_end = true, .seed = 9, .tokens_max = 40};
  const Answer whole = oracle.Run(request, 0);
  for (size_t cut = 1; cut < 40; cut += 6) {
    Request rest = request;
    rest.prompt.insert(rest.prompt.end(), whole.tokens.begin(),
                       whole.tokens.begin() + static_cast<ptrdiff_t>(cut));
    rest.sampling.tokens_max -= static_cast<uint32_t>(cut);
    const auto engine = MakeEngine(model, {});
    Collector sink(rest);
    ASSERT_TRUE(engine->Submit(rest, sink).ok());
    while (engine->Step()) {
    }
    EXPECT_TRUE(std::equal(whole.tokens.begin() + static_cast<ptrdiff_t>(cut), whole.tokens.end(),
                           sink.answer().tokens.begin(), sink.answer().tokens.end()));
  }
}

}  // namespace
}  // namespace plumb::engine
