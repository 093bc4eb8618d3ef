// engine/resume_test.cc: how a model that needs a checkpoint beside its pages goes on from a page
// boundary: where it may, what is stored for that, and that an answer is the same from there as
// from the start. Everything else at once: engine_property_test.cc.
#include <gtest/gtest.h>

#include "engine/drafter_testing.h"
#include "engine/engine_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 900;
constexpr uint32_t kPage = model::kPageTokens;
constexpr HashStateShape kShape{.window = 8, .backtrack_max = 3, .replay_rows = 140};

std::vector<TokenId> Joined(std::vector<TokenId> first, const std::vector<TokenId>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Where a prompt of so many tokens may go on at best.
uint32_t Boundary(uint32_t prompt_tokens) {
  return prompt_tokens < kShape.replay_rows ? 0
                                            : (prompt_tokens - kShape.replay_rows) / kPage * kPage;
}

class Resume : public testing::Test {
 protected:
  void Make(uint32_t pages = 40, EngineOptions options = {}) {
    GivePages(options, model_.info(), pages);
    options.step_target = base::Duration{0};
    if (options.unweighed_drafter == nullptr) options.speculation = Speculation::kOff;
    engine_ = Engine::Create(model_, *tokenizer_, clock_, options).value();
  }

  // Greedy; ends by length.
  Request Simple(std::vector<TokenId> prompt, uint32_t tokens_max = 1) {
    Request request{.id = RequestId{++last_id_}, .prompt = std::move(prompt)};
    request.sampling = {.temperature = 0, .ignore_end = true, .tokens_max = tokens_max};
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

  Answer Expected(const Request& request, uint32_t sample = 0) {
    return Oracle(model_, *tokenizer_).Run(request, sample);
  }

  // Runs the request alone, against the oracle; its cached tokens.
  uint32_t Cached(const Request& request) {
    const Collector& sink = Submit(request);
    RunDry();
    ExpectSameAnswer(sink.answer(), Expected(request));
    return sink.answer().finish->cached_tokens;
  }
  uint32_t Cached(std::vector<TokenId> prompt) { return Cached(Simple(std::move(prompt), 3)); }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  HashModel model_{kVocabularySize, kContextMax, 4096, 256, kShape};
  base::ManualClock clock_;
  std::vector<std::unique_ptr<Collector>> sinks_;
  std::unique_ptr<Engine> engine_;  // last: its end still calls the sinks
  uint64_t last_id_ = 0;
};

TEST_F(Resume, TheSamePromptGoesOnBeforeTheReplayedRows) {
  for (const uint32_t length : {1u, 139u, 140u, 267u, 268u, 269u, 300u, 396u, 500u, 800u}) {
    SCOPED_TRACE(length);
    Make();
    const std::vector<TokenId> prompt = RandomTokens(length, length);
    EXPECT_EQ(Cached(prompt), 0u);
    const uint64_t rows = engine_->stats().computed_rows;
    EXPECT_EQ(Cached(prompt), Boundary(length));
    EXPECT_EQ(engine_->stats().computed_rows, 2 * rows - Boundary(length));
    EXPECT_EQ(engine_->stats().prefix_hits, Boundary(length) > 0 ? 1u : 0u);
  }
}

TEST_F(Resume, AFollowingTurnGoesOnNearTheEndOfTheAnswer) {
  for (const uint32_t question : {12u, 30u, 100u, 150u, 300u}) {
    SCOPED_TRACE(question);
    Make();
    const Request first = Simple(RandomTokens(1, 200), 100);
    EXPECT_EQ(Cached(first), 0u);
    const std::vector<TokenId> turn =
        Joined(Joined(first.prompt, sinks_.back()->answer().tokens), RandomTokens(2, question));
    // Of what was computed, 299 tokens, the last two boundaries were kept: 128 and 256.
    EXPECT_EQ(Cached(turn), std::min(Boundary(300 + question), 256u));
  }
}

TEST_F(Resume, ASharedBeginningIsStoredForTheThirdRequest) {
  Make();
  const std::vector<TokenId> system = RandomTokens(3, 2 * kPage + 40);
  EXPECT_EQ(Cached(Joined(system, RandomTokens(4, 300))), 0u);
  // Two pages are there, but nothing to go on from after them.
  EXPECT_EQ(Cached(Joined(system, RandomTokens(5, 300))), 0u);
  EXPECT_EQ(Cached(Joined(system, RandomTokens(6, 300))), 2 * kPage);
  EXPECT_EQ(Cached(Joined(system, RandomTokens(7, 110))), 2 * kPage);
  EXPECT_EQ(Cached(Joined(system, RandomTokens(8, 90))), 0u);  // too short for its replay
}

TEST_F(Resume, RequestsAtOnceComputeTheirCommonBeginningOnce) {
  Make(60, {.prefill_rows_max = 50});
  const std::vector<TokenId> system = RandomTokens(9, 2 * kPage + 40);
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 4; ++i) {
    requests.push_back(Simple(Joined(system, RandomTokens(10 + i, 300)), 2));
    Submit(requests.back());
  }
  RunDry();
  const uint32_t whole = static_cast<uint32_t>(requests[0].prompt.size()) + 1;
  EXPECT_EQ(engine_->stats().computed_rows, 4 * whole - 3 * 2 * kPage);
  for (size_t i = 0; i < 4; ++i) {
    ExpectSameAnswer(sinks_[i]->answer(), Expected(requests[i]));
    EXPECT_EQ(sinks_[i]->answer().finish->cached_tokens, i == 0 ? 0 : 2 * kPage);
  }
}

TEST_F(Resume, SamplesComputeWhatIsBeforeTheReplayOnce) {
  Make(80, {.prefill_rows_max = 50});
  Request request = Simple(RandomTokens(6, 600), 20);
  request.samples = 5;
  request.sampling.temperature = 1;
  const Collector& samples = Submit(request);
  RunDry();
  for (uint32_t sample = 0; sample < 5; ++sample) {
    ExpectSameAnswer(samples.answer(sample), Expected(request, sample));
    EXPECT_EQ(samples.answer(sample).finish->cached_tokens, sample == 0 ? 0 : Boundary(600));
  }
  EXPECT_EQ(engine_->stats().computed_rows, Boundary(600) + 5 * (600 - Boundary(600) + 19));
}

TEST_F(Resume, WhoWaitsForACheckpointGoesOnAloneWhenTheOtherIsCancelled) {
  Make(60, {.prefill_rows_max = 50});
  const Request first = Simple(RandomTokens(7, 600), 5);
  const Request second = Simple(first.prompt, 5);
  Submit(first);
  const Collector& sink = Submit(second);
  for (int step = 0; step < 5; ++step) engine_->Step();
  EXPECT_EQ(engine_->stats().computed_rows, 250u);
  engine_->Cancel(first.id);
  RunDry();
  ExpectSameAnswer(sink.answer(), Expected(second));
}

TEST_F(Resume, APageMayLoseItsCheckpointAndStay) {
  Make(40, {.checkpoints_max = 2});
  const std::vector<TokenId> prompt = RandomTokens(11, 300);
  Cached(prompt);
  EXPECT_EQ(Cached(prompt), kPage);
  Cached(RandomTokens(12, 300));  // its two take the room
  EXPECT_EQ(engine_->stats().checkpoints, 2u);
  EXPECT_GT(engine_->stats().checkpoint_evictions, 0u);
  EXPECT_EQ(engine_->stats().page_evictions, 0u);
  EXPECT_EQ(Cached(prompt), 0u);
  EXPECT_EQ(Cached(prompt), kPage);
}

TEST_F(Resume, APageThatGoesTakesItsCheckpointWithIt) {
  Make(9);
  const std::vector<TokenId> prompt = RandomTokens(13, 5 * kPage);
  Cached(prompt);
  EXPECT_EQ(Cached(prompt), Boundary(5 * kPage));
  for (uint64_t seed = 20; seed < 30; ++seed) {
    EXPECT_EQ(Cached(RandomTokens(seed, 5 * kPage)), 0u);
    EXPECT_LE(engine_->stats().checkpoints, engine_->stats().pages_cached);
  }
  EXPECT_GT(engine_->stats().page_evictions, 30u);
  EXPECT_EQ(engine_->stats().checkpoint_evictions, 0u);
  EXPECT_EQ(Cached(prompt), 0u);
}

TEST_F(Resume, TenantsDoNotShareCheckpoints) {
  Make();
  Request request = Simple(RandomTokens(14, 400));
  request.isolation.bytes[31] = 1;
  EXPECT_EQ(Cached(request), 0u);
  request.id = RequestId{++last_id_};
  request.isolation.bytes[31] = 2;
  EXPECT_EQ(Cached(request), 0u);
  request.id = RequestId{++last_id_};
  request.isolation.bytes[31] = 1;
  EXPECT_EQ(Cached(request), Boundary(400));
}

TEST_F(Resume, WithoutReuseNothingIsKept) {
  Make(40, {.prefix_cache = false});
  const Request request = Simple(RandomTokens(15, 500), 200);
  EXPECT_EQ(Cached(request), 0u);
  EXPECT_EQ(Cached(request.prompt), 0u);
  EXPECT_EQ(engine_->stats().checkpoints, 0u);
  EXPECT_EQ(engine_->stats().pages_cached, 0u);
}

// All layers of every row are there already, so only the last token must be computed.
TEST_F(Resume, ModelsThatReplayNothingGoOnFromTheLastBoundary) {
  HashModel model(kVocabularySize, kContextMax, 4096, 256, {.window = 8, .backtrack_max = 3});
  EngineOptions options{.speculation = Speculation::kOff};
  GivePages(options, model.info(), 40);
  engine_ = Engine::Create(model, *tokenizer_, clock_, options).value();
  const auto cached = [&](std::vector<TokenId> prompt, uint32_t tokens_max, uint32_t samples = 1) {
    Request request = Simple(std::move(prompt), tokens_max);
    request.samples = samples;
    request.sampling.temperature = 0.8f;
    const Collector& sink = Submit(request);
    RunDry();
    for (uint32_t sample = 0; sample < samples; ++sample) {
      ExpectSameAnswer(sink.answer(sample), Oracle(model, *tokenizer_).Run(request, sample));
    }
    return sink.answer().finish->cached_tokens;
  };
  for (const uint32_t length : {1u, 128u, 129u, 257u, 500u}) {
    SCOPED_TRACE(length);
    const std::vector<TokenId> prompt = RandomTokens(30 + length, length);
    EXPECT_EQ(cached(prompt, 20), 0u);
    EXPECT_EQ(cached(prompt, 20, 3), (length - 1) / kPage * kPage);
  }
  // The next turn, from within the answer: 389 tokens were computed.
  const std::vector<TokenId> first = RandomTokens(16, 300);
  EXPECT_EQ(cached(first, 90), 0u);
  EXPECT_EQ(cached(Joined(Joined(first, sinks_.back()->answer().tokens), RandomTokens(17, 40)), 5),
            3 * kPage);
  EXPECT_EQ(engine_->stats().prefix_hits, 3u * 3 + 1);
}

TEST_F(Resume, DraftsAreNoMoreThanCanBeTakenBack) {
  for (const uint32_t right : {0u, 5u, 10u}) {
    SCOPED_TRACE(right);
    FakeDrafter drafter(right, right, kVocabularySize);
    Make(40, {.unweighed_drafter = &drafter});
    const Request first = Simple(RandomTokens(17, 200), 300);
    drafter.Know(first.sampling.seed, 0, first.prompt, Expected(first).tokens);
    EXPECT_EQ(Cached(first), 0u);
    const EngineStats stats = engine_->stats();
    EXPECT_GT(stats.draft_rows, 100u);
    EXPECT_LE(stats.draft_rows, stats.steps * kShape.backtrack_max);
    // The boundaries that were passed in the middle of guesses, right and wrong.
    const std::vector<TokenId> turn =
        Joined(Joined(first.prompt, sinks_.back()->answer().tokens), RandomTokens(18, 100));
    EXPECT_EQ(Cached(turn), Boundary(600));
  }
}

TEST_F(Resume, PromptLogprobsAreOfAPassOfTheirOwn) {
  for (const bool prefix_cache : {true, false}) {
    Make(40, {.prefill_rows_max = 100, .prefix_cache = prefix_cache});
    for (const uint32_t length : {2u, 140u, 141u, 400u, 3 * kPage}) {
      SCOPED_TRACE(length);
      Request request = Simple(RandomTokens(19 + length, length), 5);
      request.prompt_logprobs = true;
      request.samples = 2;
      request.sampling.temperature = 0.9f;
      request.sampling.top_logprobs = 3;
      const uint64_t before = engine_->stats().computed_rows;
      const Collector& sink = Submit(request);
      RunDry();
      ExpectSameAnswer(sink.answer(0), Expected(request, 0));
      ExpectSameAnswer(sink.answer(1), Expected(request, 1));
      EXPECT_EQ(sink.answer(0).finish->cached_tokens, 0u);
      if (prefix_cache) continue;
      const uint64_t again = length > kShape.replay_rows ? length - 1 : 0;
      EXPECT_EQ(engine_->stats().computed_rows - before, again + 2 * (length + 4));
    }
  }
}

TEST_F(Resume, PreemptionComputesAgainFromACheckpoint) {
  uint64_t preemptions = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    Make(7, {.prefill_rows_max = static_cast<uint32_t>(10 + rng.Below(200))});
    std::vector<Request> requests;
    for (int i = 0; i < 5; ++i) {
      const uint64_t length = 10 + rng.Below(400);
      requests.push_back(Simple(RandomTokens(rng.Below(2), length), 200));
      requests.back().sampling.temperature = 0.8f;
      requests.back().priority = static_cast<Priority>(rng.Below(3));
      Submit(requests.back());
      for (uint64_t steps = rng.Below(40); steps > 0; --steps) engine_->Step();
    }
    RunDry();
    for (size_t i = 0; i < requests.size(); ++i) {
      ExpectSameAnswer(sinks_[sinks_.size() - requests.size() + i]->answer(),
                       Expected(requests[i]));
    }
    preemptions += engine_->stats().preemptions;
  }
  EXPECT_GT(preemptions, 10u);
}

TEST_F(Resume, OtherWeightsGoOnFromNoCheckpointOfTheOldOnes) {
  HashModel other(kVocabularySize, kContextMax, 4096, 256, kShape);
  other.set_salt(99);
  Make(40, {.model_content = "old"});
  const std::vector<TokenId> prompt = RandomTokens(21, 400);
  Cached(prompt);
  const Request request = Simple(prompt, 20);
  const Collector& sink = Submit(request);
  ASSERT_TRUE(engine_->SwapModel(other, "new", base::kNever).ok());
  RunDry();
  ExpectSameAnswer(sink.answer(), Oracle(other, *tokenizer_).Run(request, 0));
  EXPECT_EQ(sink.answer().finish->cached_tokens, 0u);
}

TEST_F(Resume, WeightsOfAnotherStateAreRefused) {
  HashModel none(kVocabularySize, kContextMax);
  const auto refused = [&](const HashStateShape& shape) {
    HashModel other(kVocabularySize, kContextMax, 4096, 256, shape);
    const auto version = engine_->SwapModel(other, "x", base::kNever);
    return version.status().code() == base::Code::kInvalidArgument &&
           version.status().field() == "model";
  };
  Make();
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({.window = 9, .backtrack_max = 3, .replay_rows = 140}));
  EXPECT_TRUE(refused({.window = 8, .backtrack_max = 4, .replay_rows = 140}));
  EXPECT_TRUE(refused({.window = 8, .backtrack_max = 3, .replay_rows = 141}));
  EXPECT_TRUE(refused({.window = 9, .backtrack_max = 2, .replay_rows = 140}));
  EXPECT_FALSE(refused(kShape));
}

}  // namespace
}  // namespace plumb::engine
