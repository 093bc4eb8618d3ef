// engine/prefix_reuse_test.cc: reuse of computed pages changes time, never an answer, and no page
// is lost or shared wrongly. Prompts come from a few families, so that they have beginnings in
// common. The random workloads print their seed; a failing one replays by itself.
#include <gtest/gtest.h>

#include "engine/engine_testing.h"
#include "kvcache/page_chain.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 900;
constexpr uint32_t kPage = model::kPageTokens;

base::Hash256 Tenant(uint8_t number) {
  base::Hash256 isolation;
  isolation.bytes[31] = number;
  return isolation;
}

class PrefixReuse : public testing::Test {
 protected:
  void Make(uint32_t pages, EngineOptions options = {}) {
    options.kv_budget_bytes = pages * kvcache::PagePool::kAlignment;
    options.step_target = base::Duration{0};
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

  // Runs the request alone, against the oracle; its cached tokens.
  uint32_t Cached(const Request& request) {
    const Collector& sink = Submit(request);
    RunDry();
    ExpectSameAnswer(sink.answer(), Oracle(model_, *tokenizer_).Run(request, 0));
    return sink.answer().finish->cached_tokens;
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeTokenizer();
  HashModel model_{kVocabularySize, kContextMax};
  base::ManualClock clock_;
  std::vector<std::unique_ptr<Collector>> sinks_;
  std::unique_ptr<Engine> engine_;  // last: its end still calls the sinks
  uint64_t last_id_ = 0;
};

TEST_F(PrefixReuse, TheSamePromptIsComputedButForItsLastToken) {
  for (const uint32_t length : {1u, 9u, 10u, 127u, 128u, 129u, 300u, 384u, 500u}) {
    SCOPED_TRACE(length);
    Make(20);
    const std::vector<TokenId> prompt = RandomTokens(length, length);
    EXPECT_EQ(Cached(Simple(prompt)), 0u);
    const uint64_t rows = engine_->stats().computed_rows;
    // Fewer than kCopyTokensMin in a page are not worth a copy.
    const uint32_t rest = (length - 1) % kPage;
    const uint32_t expected = length - 1 - (rest < kCopyTokensMin ? rest : 0);
    EXPECT_EQ(Cached(Simple(prompt)), expected);
    EXPECT_EQ(engine_->stats().computed_rows, rows + length - expected);
    EXPECT_EQ(engine_->stats().cached_tokens, expected);
    EXPECT_EQ(engine_->stats().prefix_hits, expected > 0 ? 1u : 0u);
  }
}

TEST_F(PrefixReuse, AFollowingTurnReusesPromptAndAnswer) {
  Make(20);
  const Request first = Simple(RandomTokens(1, 200), 100);
  std::vector<TokenId> conversation = first.prompt;
  EXPECT_EQ(Cached(first), 0u);
  const std::vector<TokenId>& answer = sinks_.back()->answer().tokens;
  conversation.insert(conversation.end(), answer.begin(), answer.end());
  const std::vector<TokenId> question = RandomTokens(2, 30);
  conversation.insert(conversation.end(), question.begin(), question.end());
  // All but the last token of the answer, which was sampled and never computed.
  EXPECT_EQ(Cached(Simple(conversation, 5)), 299u);
}

TEST_F(PrefixReuse, APromptThatBranchesOffInAPageReusesThePartBefore) {
  Make(20);
  std::vector<TokenId> prompt = RandomTokens(3, 700);
  Cached(Simple(prompt));
  prompt[300] = TokenId{base::Index(prompt[300]) ^ 1};
  EXPECT_EQ(Cached(Simple(prompt)), 300u);
  prompt[260] = TokenId{base::Index(prompt[260]) ^ 1};  // 4 tokens of a page: two pages only
  EXPECT_EQ(Cached(Simple(prompt)), 256u);
}

TEST_F(PrefixReuse, EqualPagesAfterDifferentBeginningsAreNotShared) {
  Make(20);
  std::vector<TokenId> prompt = RandomTokens(30, 3 * kPage + 50);
  EXPECT_EQ(Cached(Simple(prompt, 20)), 0u);
  prompt[0] = TokenId{base::Index(prompt[0]) ^ 1};  // all pages but the first are equal
  EXPECT_EQ(Cached(Simple(prompt, 20)), 0u);
  prompt[2 * kPage - 1] = TokenId{base::Index(prompt[2 * kPage - 1]) ^ 1};
  EXPECT_EQ(Cached(Simple(prompt, 20)), 2 * kPage - 1);
}

TEST_F(PrefixReuse, OffReusesNothing) {
  Make(20, {.prefix_cache = false});
  const std::vector<TokenId> prompt = RandomTokens(4, 400);
  EXPECT_EQ(Cached(Simple(prompt)), 0u);
  EXPECT_EQ(Cached(Simple(prompt)), 0u);
  EXPECT_EQ(engine_->stats().pages_cached, 0u);
}

TEST_F(PrefixReuse, TenantsDoNotShare) {
  Make(20);
  Request request = Simple(RandomTokens(5, 400));
  request.isolation = Tenant(1);
  EXPECT_EQ(Cached(request), 0u);
  request.id = RequestId{++last_id_};
  request.isolation = Tenant(2);
  EXPECT_EQ(Cached(request), 0u);
  request.id = RequestId{++last_id_};
  request.isolation = Tenant(1);
  EXPECT_EQ(Cached(request), 399u);
}

TEST_F(PrefixReuse, SamplesAndRequestsAtOnceComputeAPrefixOnce) {
  Make(80, {.prefill_rows_max = 50});
  Request request = Simple(RandomTokens(6, 600), 20);
  request.samples = 5;
  request.sampling.temperature = 1;
  const Collector& samples = Submit(request);
  Request other = Simple(request.prompt, 20);
  other.prompt.resize(530);
  const Collector& sink = Submit(other);
  RunDry();
  for (uint32_t sample = 0; sample < 5; ++sample) {
    ExpectSameAnswer(samples.answer(sample), Oracle(model_, *tokenizer_).Run(request, sample));
  }
  ExpectSameAnswer(sink.answer(), Oracle(model_, *tokenizer_).Run(other, 0));
  // Four whole pages once; what follows, each for itself.
  EXPECT_EQ(engine_->stats().computed_rows, 512u + 5 * (88 + 19) + (18 + 19));
  EXPECT_EQ(samples.answer(0).finish->cached_tokens, 0u);
  EXPECT_EQ(samples.answer(4).finish->cached_tokens, 512u);
  EXPECT_EQ(sink.answer().finish->cached_tokens, 512u);
}

TEST_F(PrefixReuse, SamplesTakeNoPagesForWhatTheyShare) {
  // Four shared pages and one for each sample are all there is: eight run at once.
  Make(4 + 8, {.prefill_rows_max = 50});
  EXPECT_EQ(Cached(Simple(RandomTokens(40, 3 * kPage))), 0u);  // stays, until its pages are needed
  Request request = Simple(RandomTokens(6, 600), 20);
  request.samples = 8;
  const Collector& samples = Submit(request);
  engine_->Step();
  EXPECT_EQ(engine_->stats().running, 8u);
  EXPECT_EQ(engine_->stats().pages_used, 1u);
  EXPECT_EQ(engine_->stats().page_evictions, 0u);
  RunDry();
  EXPECT_EQ(engine_->stats().preemptions, 0u);
  EXPECT_EQ(engine_->stats().page_evictions, 3u);
  const Answer expected = Oracle(model_, *tokenizer_).Run(request, 0);
  for (uint32_t sample = 0; sample < 8; ++sample) {
    ExpectSameAnswer(samples.answer(sample), expected);  // greedy
  }
}

TEST_F(PrefixReuse, WhoWaitsForAPageComputesItWhenTheOtherIsCancelled) {
  Make(40, {.prefill_rows_max = 50});
  const Request first = Simple(RandomTokens(7, 600), 5);
  const Request second = Simple(first.prompt, 5);
  Submit(first);
  const Collector& sink = Submit(second);
  for (int step = 0; step < 5; ++step) engine_->Step();  // 250 tokens: in the second page
  engine_->Cancel(first.id);
  RunDry();
  ExpectSameAnswer(sink.answer(), Oracle(model_, *tokenizer_).Run(second, 0));
  // The first left its half page: nothing was computed twice.
  EXPECT_EQ(engine_->stats().computed_rows, 600u + 4);
}

TEST_F(PrefixReuse, TenThousandRequestsStoreTheirSystemPromptOnce) {
  Make(40);
  const std::vector<TokenId> system = RandomTokens(8, 4 * kPage);
  base::Rng rng(8);
  constexpr uint64_t kRequests = 10'000;
  for (uint64_t i = 0; i < kRequests; ++i) {
    Request request = Simple(system);
    for (int token = 0; token < 3; ++token) {
      request.prompt.push_back(TokenId{static_cast<uint32_t>(rng.Below(kVocabularySize))});
    }
    const Collector& sink = Submit(request);
    while (engine_->Step()) {
    }
    ASSERT_EQ(sink.answer().finish->cached_tokens, i == 0 ? 0 : 4 * kPage);
    sinks_.clear();
  }
  engine_->CheckPages();
  EXPECT_EQ(engine_->stats().pages_cached, 4u);
  EXPECT_EQ(engine_->stats().computed_rows, 4 * kPage + 3 * kRequests);
  EXPECT_EQ(engine_->stats().prefix_hits, kRequests - 1);
}

TEST_F(PrefixReuse, AFullPoolForgetsTheLeastRecentlyUsed) {
  Make(9);
  const std::vector<TokenId> kept = RandomTokens(9, 2 * kPage + 1);
  for (uint64_t seed = 100; seed < 120; ++seed) {
    EXPECT_EQ(Cached(Simple(kept)), seed == 100 ? 0 : 2 * kPage);
    EXPECT_EQ(Cached(Simple(RandomTokens(seed, 2 * kPage))), 0u);
  }
  EXPECT_GT(engine_->stats().page_evictions, 30u);
  EXPECT_EQ(Cached(Simple(RandomTokens(100, 2 * kPage))), 0u);  // long gone
}

// Few different pages in any order: the same page often comes after different beginnings.
std::vector<TokenId> Mosaic(base::Rng& rng, size_t count) {
  std::vector<TokenId> tokens;
  while (tokens.size() < count) {
    const std::vector<TokenId> page = RandomTokens(rng.Below(2), kPage);
    tokens.insert(tokens.end(), page.begin(), page.end());
  }
  tokens.resize(count);
  return tokens;
}

// Requests whose prompts are beginnings of a few texts or made of the same pages, some followed by
// tokens of their own.
std::vector<Request> Family(base::Rng& rng, uint32_t count, uint32_t context_max) {
  std::vector<Request> requests;
  for (uint64_t id = 1; id <= count; ++id) {
    const uint32_t length = static_cast<uint32_t>(1 + rng.Below(context_max * 2 / 3));
    const uint64_t most = std::min<uint64_t>(context_max - length, 200);
    Request request = RandomRequest(rng, id, 1, static_cast<uint32_t>(1 + rng.Below(most)));
    request.prompt = rng.Below(3) == 0 ? Mosaic(rng, length) : RandomTokens(rng.Below(3), length);
    const size_t own = rng.Below(2) * rng.Below(40);
    for (size_t i = length - std::min<size_t>(own, length); i < length; ++i) {
      request.prompt[i] = TokenId{static_cast<uint32_t>(rng.Below(kVocabularySize))};
    }
    request.isolation = Tenant(static_cast<uint8_t>(rng.Below(4) == 0));
    requests.push_back(std::move(request));
  }
  return requests;
}

class PrefixReuseWorkload : public PrefixReuse {
 protected:
  // Steps through the requests, which arrive and are cancelled at random moments; pages are checked
  // after each step.
  std::vector<std::unique_ptr<Collector>> Run(const std::vector<Request>& requests, base::Rng rng,
                                              bool with_cancels) {
    std::vector<std::unique_ptr<Collector>> sinks;
    bool busy = true;
    uint32_t steps = 0;
    while (busy || sinks.size() < requests.size()) {
      if (sinks.size() < requests.size() && rng.Below(3) == 0) {
        const Request& next = requests[sinks.size()];
        auto sink = std::make_unique<Collector>(next);
        const base::Status status = engine_->Submit(next, *sink);
        if (status.ok()) sinks.push_back(std::move(sink));
        CHECK(status.ok() || status.code() == base::Code::kOverloaded) << status.ToString();
      }
      if (with_cancels && !sinks.empty() && rng.Below(12) == 0) {
        engine_->Cancel(requests[rng.Below(sinks.size())].id);
      }
      busy = engine_->Step();
      engine_->CheckPages();
      CHECK(++steps < 1'000'000) << "no end";
    }
    return sinks;
  }
};

void ExpectSameBits(const Answer& a, const Answer& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.text, b.text);
  ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
  for (size_t i = 0; i < a.logprobs.size(); ++i) {
    EXPECT_EQ(a.logprobs[i].logprob, b.logprobs[i].logprob);
    ASSERT_EQ(a.logprobs[i].top.size(), b.logprobs[i].top.size());
    for (size_t k = 0; k < a.logprobs[i].top.size(); ++k) {
      EXPECT_EQ(a.logprobs[i].top[k].token, b.logprobs[i].top[k].token);
      EXPECT_EQ(a.logprobs[i].top[k].logprob, b.logprobs[i].top[k].logprob);
    }
  }
}

TEST_F(PrefixReuseWorkload, OnAndOffGiveTheAnswersOfEachAlone) {
  uint64_t cached = 0, evictions = 0, preemptions = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    EngineOptions options;
    options.sequences_max = static_cast<uint32_t>(1 + rng.Below(10));
    options.rows_max = options.sequences_max + static_cast<uint32_t>(rng.Below(300));
    options.prefill_rows_max = static_cast<uint32_t>(1 + rng.Below(options.rows_max));
    options.waiting_max = static_cast<uint32_t>(16 + rng.Below(30));
    const uint32_t pages = static_cast<uint32_t>(5 + rng.Below(seed % 2 == 0 ? 5 : 40));
    const std::vector<Request> requests = Family(rng, 20, std::min(kContextMax, pages * kPage));
    const bool with_cancels = seed % 3 == 0;
    Make(pages, options);
    const auto on = Run(requests, rng, with_cancels);
    const EngineStats stats = engine_->stats();
    EXPECT_EQ(stats.pages_used, 0u);
    cached += stats.cached_tokens;
    evictions += stats.page_evictions;
    preemptions += stats.preemptions;
    options.prefix_cache = false;
    Make(pages, options);
    const auto off = Run(requests, rng, false);
    const Oracle oracle(model_, *tokenizer_);
    for (size_t i = 0; i < requests.size(); ++i) {
      for (uint32_t sample = 0; sample < requests[i].samples; ++sample) {
        const Answer &with = on[i]->answer(sample), &without = off[i]->answer(sample);
        if (with.finish->reason == FinishReason::kCancelled) {
          EXPECT_TRUE(with_cancels);
          EXPECT_TRUE(with.tokens.size() <= without.tokens.size() &&
                      std::equal(with.tokens.begin(), with.tokens.end(), without.tokens.begin()));
        } else {
          ExpectSameBits(with, without);
        }
        if (seed <= 10) ExpectSameAnswer(without, oracle.Run(requests[i], sample));
        EXPECT_LT(with.finish->cached_tokens, requests[i].prompt.size());
      }
    }
    if (HasFailure()) return;
  }
  // The workloads do reach what they are for.
  EXPECT_GT(cached, 50'000u);
  EXPECT_GT(evictions, 1000u);
  EXPECT_GT(preemptions, 20u);
}

}  // namespace
}  // namespace plumb::engine
