// api/limits_random_test.cc
// Whatever happens to requests under limits, in whatever order, nothing is held once they have
// ended: each key has its places at once again, and its tokens but for those that were used, as the
// generator tells them. Names of limits_test.cc, at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "api/testing/service_fixture.h"
#include "base/random.h"
#include "tenancy/local_limiter.h"

namespace plumb::api::testing {
namespace {

constexpr const char* kKeys[] = {"first-key", "second-key"};
constexpr tenancy::KeyLimits kLimits[] = {
    {.requests_per_minute = 1000, .tokens_per_minute = 40'000, .concurrent_requests = 6},
    {.requests_per_minute = 20, .tokens_per_minute = 3'000, .concurrent_requests = 3}};
constexpr int kSteps = 60;

// Answers, fails, or falls silent until it is cancelled; by the request alone.
FakeAnswer Answer(const engine::Request& request, uint32_t sample) {
  base::Rng rng(static_cast<uint64_t>(request.id) * 31 + sample);
  FakeAnswer answer{.tokens = ByteTokens(std::string(rng.Below(30), 'x'), rng.Below(3) > 0),
                    .chunk_tokens = static_cast<uint32_t>(rng.Below(4)),
                    .failure = {}};
  if (rng.Below(5) == 0) answer.failure = base::Internal("broken");
  if (rng.Below(8) == 0)
    answer.failure = base::Status(base::Code::kUnavailable, "stopping").WithRetryAfterMs(1);
  const bool embeds = request.pooling != engine::Pooling::kNone;
  if (embeds && !answer.failure.ok()) answer.tokens.clear();
  return answer;
}

class RandomRound {
 public:
  explicit RandomRound(uint64_t seed)
      : rng_(seed),
        limiter_({kLimits[0], kLimits[1]}, clock_),
        fixture_(Answer, {kKeys[0], kKeys[1]}, {.live_max = 8, .queue_max = 4},
                 FixtureModel::kTemplate, {}, {.limiter = &limiter_, .clock = &clock_}) {}

  void Play() {
    for (int i = 0; i < kSteps; ++i) {
      const uint64_t what = rng_.Below(10);
      if (what < 6) Send();
      if (what >= 6 && what < 9 && !clients_.empty())
        clients_[rng_.Below(clients_.size())]->Leave();
      if (what == 9) fixture_.generator.RefuseBeyond(rng_.Below(2) == 0 ? rng_.Below(4) : SIZE_MAX);
    }
    // All clients leave, or the server stops while they wait; nobody waits for background answers.
    const bool leave = rng_.Below(2) == 0;
    for (const auto& client : clients_)
      if (leave) client->Leave();
    fixture_.service.Stop();
    for (const auto& client : clients_) client->WaitGone();
    EXPECT_EQ(fixture_.service.live_requests(), 0u);
  }

  void Check() {
    uint64_t used = 0;
    for (uint32_t caller = 0; caller < std::size(kLimits); ++caller) {
      tenancy::Reservation held{.caller = caller, .batch = true};
      const tenancy::LimitReport left = limiter_.Enter(held).report;
      EXPECT_EQ(left.concurrent.remaining, kLimits[caller].concurrent_requests) << caller;
      used += left.tokens.limit - left.tokens.remaining;
    }
    EXPECT_EQ(used, fixture_.generator.tokens_told());
  }
  // What the round came across.
  void Count(std::vector<size_t>& statuses) const {
    for (const auto& client : clients_) ++statuses.at(client->so_far().status);
  }

 private:
  void Send() {
    const bool stream = rng_.Below(2) == 0;
    json body;
    std::string path = "/v1/chat/completions";
    switch (rng_.Below(4)) {
      case 0:
        body = ChatBody({{"max_tokens", 1 + rng_.Below(50)}, {"stream", stream}});
        break;
      case 1:
        path = "/v1/completions";
        body = {{"model", "fake"}, {"prompt", {"ab", "cde"}}, {"n", 2}, {"stream", stream}};
        break;
      case 2:
        path = "/v1/embeddings";
        body = {{"model", "fake"}, {"input", std::vector<std::string>(1 + rng_.Below(40), "abc")}};
        break;
      default:
        path = "/v1/responses";
        body = {{"model", "fake"}, {"input", rng_.Below(6) == 0 ? json(5) : json("hi")}};
        body["max_output_tokens"] = 40;
        body["background"] = rng_.Below(4) == 0;
    }
    net::HttpHeaders headers{{"Content-Type", "application/json"},
                             {"x-api-key", kKeys[rng_.Below(std::size(kKeys))]}};
    if (rng_.Below(4) == 0)
      headers.Add("Idempotency-Key", "again-" + std::to_string(rng_.Below(3)));
    clients_.push_back(std::make_unique<FakeClient>());
    fixture_.Send(*clients_.back(), net::HttpMethod::kPost, path, body.dump(), headers);
  }

  base::Rng rng_;
  base::ManualClock clock_;
  tenancy::LocalLimiter limiter_;
  ServiceFixture fixture_;
  std::vector<std::unique_ptr<FakeClient>> clients_;
};

TEST(LimitsAtRandom, NothingIsHeldOnceAllHaveEnded) {
  std::vector<size_t> statuses(600);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomRound round(seed);
    round.Play();
    round.Check();
    round.Count(statuses);
  }
  for (const int status : {200, 400, 429, 500, 503})
    EXPECT_GT(statuses[static_cast<size_t>(status)], 0u) << status << " never came";
}

}  // namespace
}  // namespace plumb::api::testing
