// engine/engine_property_test.cc: the promise of the engine, over random workloads: tokens, text,
// log-probabilities and embeddings are those of the request alone, under any mix of batch, chunks,
// prefix hits, preemption, priorities, drafts, grammars, temperature, threads, and whether the
// host's work is done beside the forward or between two; with a model for which pages suffice, and
// with one that has states. A failing seed is printed and replays by itself, as far as threads
// allow.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "engine/drafter_testing.h"
#include "engine/engine_testing.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 600;
constexpr uint64_t kSeedsEach = 14;
constexpr uint32_t kRequests = 14;

// Who turns the loop.
enum class Turning : uint8_t { kSteps, kThreads, kSynchronousThreads };

struct Submitted {
  Request request;
  std::vector<Answer> expected;  // by sample
  std::unique_ptr<Collector> sink;
  bool cancelled = false;
};

HashStateShape DrawShape(uint64_t seed) {
  base::Rng rng(seed ^ 0x57A7E);
  HashStateShape shape{.window = static_cast<uint32_t>(2 + rng.Below(12)),
                       .backtrack_max = static_cast<uint32_t>(1 + rng.Below(8))};
  const bool replays = rng.Below(10) > 0;
  const auto more = static_cast<uint32_t>(rng.Below(rng.Below(2) == 0 ? 10 : 150));
  if (replays) shape.replay_rows = shape.window + shape.backtrack_max + more;
  return shape;
}

class Workload {
 public:
  Workload(uint64_t seed, bool stateful)
      : rng_(seed),
        stateful_(stateful),
        turning_(static_cast<Turning>(seed % 3)),
        model_(kVocabularySize, kContextMax, 4096, 64,
               stateful ? DrawShape(seed) : HashStateShape()),
        drafter_(seed, static_cast<uint32_t>(rng_.Below(11)), kVocabularySize) {
    EngineOptions options;
    const auto pages = static_cast<uint32_t>(6 + rng_.Below(20));
    options.sequences_max = static_cast<uint32_t>(1 + rng_.Below(12));
    options.rows_max = options.sequences_max + static_cast<uint32_t>(rng_.Below(200));
    options.prefill_rows_max = static_cast<uint32_t>(1 + rng_.Below(options.rows_max));
    options.waiting_max = static_cast<uint32_t>(16 + rng_.Below(16));
    options.prefix_cache = rng_.Below(4) > 0;
    options.synchronous = turning_ == Turning::kSynchronousThreads;
    options.speculation = rng_.Below(2) == 0 ? Speculation::kNgram : Speculation::kOff;
    options.watchdog = base::Duration{0};  // the clock stands still, but machines may be slow
    if (rng_.Below(3) > 0) options.unweighed_drafter = &drafter_;
    if (rng_.Below(2) == 0) options.pool = &pool_;
    // Ids that its grammars never leave alone.
    if (seed % 2 == 0) model_.set_never_sampled({TokenId{'E'}, TokenId{'7'}, TokenId{258}});
    if (stateful) options.checkpoints_max = static_cast<uint32_t>(rng_.Below(6));
    GivePages(options, model_.info(), pages);
    // Steps take some time, so that costs are learned and steps are limited by them.
    model_.before_forward = [this] {
      clock_.Advance(base::Milliseconds(static_cast<int64_t>(1 + forward_rng_.Below(20))));
    };
    engine_ = Engine::Create(model_, *tokenizer_, clock_, options).value();
    MakeRequests();
  }

  void Run() {
    turning_ == Turning::kSteps ? RunInSteps() : RunInThreads();
    for (const Submitted& submitted : all_) ExpectOracle(submitted);
    engine_->CheckPages();
    EXPECT_EQ(engine_->stats().pages_used, 0u);
    EXPECT_EQ(engine_->stats().running, 0u);
    EXPECT_EQ(engine_->stats().waiting, 0u);
  }

  EngineStats stats() const { return engine_->stats(); }

 private:
  void MakeRequests() {
    const Oracle oracle(model_, *tokenizer_);
    for (uint64_t id = 1; id <= kRequests; ++id) {
      // Reuse begins beyond a page, and with states beyond the replayed rows too.
      const uint64_t longest = stateful_ ? 500 : 300, long_of = stateful_ ? 2 : 4;
      const auto prompt =
          static_cast<uint32_t>(1 + rng_.Below(rng_.Below(long_of) == 0 ? longest : 60));
      const uint64_t room = std::min(60u, engine_->context_max() - prompt);
      Submitted submitted;
      Request& request = submitted.request;
      request = RandomRequest(rng_, id, prompt, static_cast<uint32_t>(1 + rng_.Below(room)));
      AddFeatures(rng_, request);
      // A beginning in common with others, or a text that repeats itself.
      base::Rng family(rng_.Below(2));
      const size_t shared = rng_.Below(2) == 0 ? rng_.Below(prompt) : 0;
      for (size_t i = 0; i < shared; ++i) request.prompt[i] = RandomToken(family);
      if (rng_.Below(4) == 0) {
        for (size_t i = 7; i < prompt; ++i) request.prompt[i] = request.prompt[i % 7];
      }
      for (uint32_t sample = 0; sample < request.samples; ++sample) {
        submitted.expected.push_back(oracle.Run(request, sample));
        drafter_.Know(request.sampling.seed, sample, request.prompt,
                      submitted.expected.back().tokens);
      }
      submitted.sink = std::make_unique<Collector>(request);
      all_.push_back(std::move(submitted));
    }
  }

  static TokenId RandomToken(base::Rng& rng) {
    return TokenId{static_cast<uint32_t>(rng.Below(kVocabularySize))};
  }

  // False: the queue is full.
  bool Submit(Submitted& submitted) {
    const base::Status status = engine_->Submit(submitted.request, *submitted.sink);
    if (status.code() == base::Code::kOverloaded) return false;
    CHECK(status.ok()) << status.ToString();
    return true;
  }

  void MaybeCancel(size_t submitted_count) {
    if (submitted_count == 0 || rng_.Below(12) > 0) return;
    Submitted& victim = all_[rng_.Below(submitted_count)];
    victim.cancelled = victim.cancelled || !victim.sink->Ended();
    engine_->Cancel(victim.request.id);
  }

  void RunInSteps() {
    size_t submitted = 0;
    uint32_t steps = 0;
    for (bool busy = true; busy || submitted < all_.size();) {
      if (submitted < all_.size() && rng_.Below(2) == 0) submitted += Submit(all_[submitted]);
      MaybeCancel(submitted);
      busy = engine_->Step();
      if (steps % 8 == 0) engine_->CheckPages();
      CHECK(++steps < 1'000'000) << "no end";
    }
  }

  void RunInThreads() {
    engine_->Start();
    size_t submitted = 0, awaited = 0;
    while (submitted < all_.size()) {
      if (Submit(all_[submitted])) {
        ++submitted;
      } else {
        all_[awaited++].sink->WaitForEnd();
      }
      MaybeCancel(submitted);
    }
    for (const Submitted& one : all_) one.sink->WaitForEnd();
    engine_->Drain(base::kNever);
  }

  static void ExpectOracle(const Submitted& submitted) {
    for (uint32_t sample = 0; sample < submitted.request.samples; ++sample) {
      SCOPED_TRACE(testing::Message() << "request " << static_cast<uint64_t>(submitted.request.id)
                                      << " sample " << sample);
      const Answer& answer = submitted.sink->answer(sample);
      const Answer& expected = submitted.expected[sample];
      ASSERT_TRUE(answer.finish);
      // No token of the prompt is both reused and stored, nor stored twice.
      const auto& stored = answer.finish->stored_tokens;
      EXPECT_LE(answer.finish->cached_tokens + stored[0] + stored[1],
                submitted.request.prompt.size());
      if (answer.finish->reason != FinishReason::kCancelled) {
        ExpectSameAnswer(answer, expected);
        continue;
      }
      // Cut short, but what came before is the same.
      EXPECT_TRUE(submitted.cancelled);
      EXPECT_TRUE(answer.embedding.empty());
      ASSERT_LE(answer.tokens.size(), expected.tokens.size());
      EXPECT_TRUE(std::equal(answer.tokens.begin(), answer.tokens.end(), expected.tokens.begin()));
    }
  }

  base::Rng rng_;
  base::Rng forward_rng_{17};  // of the thread that computes
  const bool stateful_;
  const Turning turning_;
  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  HashModel model_;
  base::ManualClock clock_;
  tensor::ThreadPool pool_{{.threads = 3, .spin_pauses = 100}};
  FakeDrafter drafter_;
  std::vector<Submitted> all_;
  std::unique_ptr<Engine> engine_;  // last: its end still calls the sinks
};

// Whether the model has states, and which seeds.
class AnyMix : public testing::TestWithParam<std::tuple<bool, uint64_t>> {};

TEST_P(AnyMix, GivesTheAnswersOfEachAlone) {
  EngineStats sum;
  for (uint64_t i = 0; i < kSeedsEach; ++i) {
    const auto [stateful, part] = GetParam();
    const uint64_t seed = 1 + part * kSeedsEach + i;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Workload workload(seed, stateful);
    workload.Run();
    if (HasFailure()) return;
    const EngineStats stats = workload.stats();
    sum.samples_stop += stats.samples_stop;
    sum.samples_error += stats.samples_error;
    sum.preemptions += stats.preemptions;
    sum.prefix_hits += stats.prefix_hits;
    sum.draft_rows += stats.draft_rows;
    sum.drafts_kept += stats.drafts_kept;
  }
  // The workloads do meet what they are meant to meet.
  EXPECT_GT(sum.samples_stop, 30u);
  EXPECT_GT(sum.preemptions, 0u);
  EXPECT_GT(sum.prefix_hits, 0u);
  EXPECT_GT(sum.drafts_kept, 100u);
  EXPECT_GT(sum.draft_rows, sum.drafts_kept + 100);
}

// Other workloads for each --gtest_random_seed: tests/sim/new_seeds.sh takes one from the commit.
TEST(NewSeeds, GiveTheAnswersOfEachAlone) {
  constexpr uint64_t kWorkloads = 10;
  const uint64_t first = 1'000'000 + uint64_t{kWorkloads} * GTEST_FLAG_GET(random_seed);
  for (uint64_t seed = first; seed < first + kWorkloads; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Workload workload(seed, seed % 2 == 0);
    workload.Run();
    EXPECT_GT(workload.stats().generated_tokens, 0u);
    if (HasFailure()) return;
  }
}

std::string NameOf(const testing::TestParamInfo<std::tuple<bool, uint64_t>>& info) {
  return (std::get<0>(info.param) ? "States" : "Pages") + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyMix,
                         testing::Combine(testing::Bool(), testing::Range<uint64_t>(0, 15)),
                         NameOf);

}  // namespace
}  // namespace plumb::engine
