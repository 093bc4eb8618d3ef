// tenancy/local_limiter_test.cc
// Exactly as many pass as may, at once and over time; what is not used comes back.
#include "tenancy/local_limiter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/thread.h"

namespace plumb::tenancy {
namespace {

using base::Code;
using base::Milliseconds;

struct Asked {
  base::Status status;
  LimitReport report;
  Reservation held;
};

// Enters and reserves, as a request does; one that does not pass is settled.
Asked Ask(Limiter& limiter, uint64_t tokens, uint32_t caller = 0) {
  Reservation held{.caller = caller};
  Limiter::Decision decision = limiter.Enter(held);
  if (!decision.status.ok()) return {decision.status, decision.report, held};
  decision = limiter.Reserve(held, tokens);
  if (!decision.status.ok()) limiter.Settle(held, {.request = false});
  return {decision.status, decision.report, held};
}

// How many of `tries` requests pass now; those are not settled.
uint32_t CountPassing(Limiter& limiter, uint32_t tries, uint64_t tokens) {
  uint32_t passed = 0;
  for (uint32_t i = 0; i < tries; ++i)
    if (Ask(limiter, tokens).status.ok()) ++passed;
  return passed;
}

TEST(LocalLimiter, LetsExactlyTheLimitPassAtOnce) {
  base::ManualClock clock;
  for (const uint32_t limit : {1u, 3u, 7u, 59u, 61u, 1000u}) {
    LocalLimiter requests({{.requests_per_minute = limit}}, clock);
    EXPECT_EQ(CountPassing(requests, limit + 10, 5), limit);
    LocalLimiter tokens({{.tokens_per_minute = limit}}, clock);
    EXPECT_EQ(CountPassing(tokens, limit + 10, 1), limit);
    LocalLimiter concurrent({{.concurrent_requests = limit}}, clock);
    EXPECT_EQ(CountPassing(concurrent, limit + 10, 5), limit);
  }
}

TEST(LocalLimiter, AHundredAtOnceWithRoomForFivePassFive) {
  base::ManualClock clock;
  const KeyLimits cases[] = {
      {.requests_per_minute = 5}, {.tokens_per_minute = 599}, {.concurrent_requests = 5}};
  for (const KeyLimits& limits : cases) {
    LocalLimiter limiter({limits}, clock);
    std::atomic<uint32_t> passed{0};
    std::vector<base::Thread> threads;
    for (uint32_t i = 0; i < 10; ++i)
      threads.emplace_back("ask", [&] { passed += CountPassing(limiter, 10, 100); });
    for (base::Thread& thread : threads) thread.Join();
    EXPECT_EQ(passed.load(), 5u);
  }
}

// A batch would else take every token as it comes, and its caller could ask for nothing else.
TEST(LocalLimiter, LinesOfBatchesLeaveHalfToOthers) {
  base::ManualClock clock;
  LocalLimiter limiter({{.requests_per_minute = 10, .tokens_per_minute = 1000}}, clock);
  const auto line = [&](uint64_t tokens) {
    Reservation held{.caller = 0, .batch = true};
    if (const base::Status status = limiter.Enter(held).status; !status.ok()) return status;
    base::Status status = limiter.Reserve(held, tokens).status;
    if (!status.ok()) limiter.Settle(held, {.request = false});
    return status;
  };
  EXPECT_TRUE(line(400).ok());
  const base::Status refused = line(200);
  EXPECT_EQ(refused.code(), Code::kQuotaExceeded);
  EXPECT_EQ(refused.retry_after_ms(), 6000u) << "700 of 1000 are there then, and 600 are";
  EXPECT_TRUE(Ask(limiter, 600).status.ok()) << "others may have all of it";
  clock.Advance(base::Seconds(60));
  EXPECT_TRUE(line(900).ok()) << "what is more than half passes where all is there";
  clock.Advance(base::Seconds(60));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(line(1).ok()) << i;
  EXPECT_EQ(line(1).code(), Code::kQuotaExceeded) << "5 of 10 requests are left";
  EXPECT_EQ(CountPassing(limiter, 10, 1), 5u);
}

TEST(LocalLimiter, ALimitOfOneLetsALineOfABatchPass) {
  base::ManualClock clock;
  LocalLimiter limiter({{.requests_per_minute = 1, .tokens_per_minute = 1}}, clock);
  Reservation held{.caller = 0, .batch = true};
  EXPECT_TRUE(limiter.Enter(held).status.ok());
  EXPECT_TRUE(limiter.Reserve(held, 1).status.ok());
  limiter.Settle(held, {.tokens = 1});
}

TEST(LocalLimiter, LinesOfBatchesTakeNoPlaceAmongThoseAtOnce) {
  base::ManualClock clock;
  LocalLimiter limiter({{.concurrent_requests = 1}}, clock);
  Reservation lines[3] = {{.batch = true}, {.batch = true}, {.batch = true}};
  for (Reservation& held : lines) EXPECT_TRUE(limiter.Enter(held).status.ok());
  const Asked one = Ask(limiter, 5);
  EXPECT_TRUE(one.status.ok());
  EXPECT_EQ(one.report.concurrent.remaining, 0u);
  EXPECT_EQ(Ask(limiter, 5).status.reason(), "concurrency_limit_exceeded");
  for (Reservation& held : lines) limiter.Settle(held, {});
  EXPECT_FALSE(Ask(limiter, 5).status.ok());
  limiter.Settle(one.held, {});
  EXPECT_TRUE(Ask(limiter, 5).status.ok());
}

TEST(LocalLimiter, FillsEvenlyAndNeverAboveAMinute) {
  base::ManualClock clock;
  LocalLimiter limiter({{.requests_per_minute = 6}}, clock);
  EXPECT_EQ(CountPassing(limiter, 10, 0), 6u);
  clock.Advance(Milliseconds(9'999));
  EXPECT_EQ(CountPassing(limiter, 10, 0), 0u);
  clock.Advance(Milliseconds(1));
  EXPECT_EQ(CountPassing(limiter, 10, 0), 1u);
  clock.Advance(base::Seconds(3600));
  EXPECT_EQ(CountPassing(limiter, 10, 0), 6u);
}

TEST(LocalLimiter, ARefusalTakesNothingAndSaysWhenToComeBack) {
  base::ManualClock clock;
  LocalLimiter limiter({{.requests_per_minute = 2, .tokens_per_minute = 100}}, clock);
  EXPECT_TRUE(Ask(limiter, 90).status.ok());
  const Asked refused = Ask(limiter, 40);
  EXPECT_EQ(refused.status.code(), Code::kQuotaExceeded);
  EXPECT_EQ(refused.status.reason(), "rate_limit_exceeded");
  EXPECT_EQ(refused.status.retry_after_ms(), 18'000u) << "30 of 100 a minute";
  EXPECT_EQ(refused.report.requests.remaining, 1u);
  EXPECT_EQ(refused.report.tokens.remaining, 10u);
  EXPECT_EQ(refused.report.tokens.limit, 100u);
  EXPECT_EQ(refused.report.tokens.reset, base::Seconds(54));
  clock.Advance(Milliseconds(17'999));
  EXPECT_FALSE(Ask(limiter, 40).status.ok());
  clock.Advance(Milliseconds(1));
  EXPECT_TRUE(Ask(limiter, 40).status.ok());
}

TEST(LocalLimiter, GivesBackWhatWasNotUsed) {
  base::ManualClock clock;
  LocalLimiter limiter({{.tokens_per_minute = 100, .concurrent_requests = 1}}, clock);
  Asked asked = Ask(limiter, 100);
  ASSERT_TRUE(asked.status.ok());
  EXPECT_EQ(Ask(limiter, 1).status.reason(), "concurrency_limit_exceeded");
  limiter.Settle(asked.held, {.tokens = 30});
  EXPECT_EQ(Ask(limiter, 71).status.reason(), "rate_limit_exceeded");
  asked = Ask(limiter, 70);
  ASSERT_TRUE(asked.status.ok());
  limiter.Settle(asked.held, {.tokens = 1000});
  EXPECT_EQ(Ask(limiter, 1).report.tokens.remaining, 0u) << "nothing is owed either";
  clock.Advance(base::Seconds(60));
  asked = Ask(limiter, 50);
  ASSERT_TRUE(asked.status.ok());
  clock.Advance(base::Seconds(60));
  limiter.Settle(asked.held, {.tokens = 0});
  EXPECT_EQ(Ask(limiter, 1).report.tokens.remaining, 99u) << "never above the limit";
}

TEST(LocalLimiter, ARequestThatTheServerHadNoRoomForIsGivenBack) {
  base::ManualClock clock;
  LocalLimiter limiter({{.requests_per_minute = 2}}, clock);
  const Asked first = Ask(limiter, 5);
  const Asked second = Ask(limiter, 5);
  EXPECT_FALSE(Ask(limiter, 5).status.ok());
  limiter.Settle(first.held, {.request = false});
  limiter.Settle(second.held, {.request = true, .tokens = 5});
  EXPECT_EQ(CountPassing(limiter, 5, 5), 1u);
}

TEST(LocalLimiter, KnowsWhatNeverFits) {
  base::ManualClock clock;
  LocalLimiter limiter({{.tokens_per_minute = 100}, {.requests_per_minute = 5}}, clock);
  EXPECT_EQ(limiter.tokens_max(0), 100u);
  EXPECT_EQ(limiter.tokens_max(1), UINT64_MAX);
  EXPECT_DEATH(Ask(limiter, 101), "more than there ever is");
}

TEST(LocalLimiter, KeysDoNotShareAndZeroIsNoLimit) {
  base::ManualClock clock;
  LocalLimiter limiter({{.requests_per_minute = 1}, {.requests_per_minute = 2}, {}}, clock);
  EXPECT_TRUE(Ask(limiter, 1, 0).status.ok());
  EXPECT_FALSE(Ask(limiter, 1, 0).status.ok());
  EXPECT_TRUE(Ask(limiter, 1, 1).status.ok());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Ask(limiter, UINT64_MAX, 2).status.ok());
  EXPECT_EQ(Ask(limiter, 1, 2).report.tokens.limit, 0u);
}

TEST(LocalLimiter, TheLargestLimitsDoNotOverflow) {
  base::ManualClock clock;
  clock.Advance({INT64_MAX / 2});
  LocalLimiter limiter({{.requests_per_minute = kLimitMax, .tokens_per_minute = kLimitMax}}, clock);
  EXPECT_TRUE(Ask(limiter, kLimitMax).status.ok());
  EXPECT_FALSE(Ask(limiter, 1).status.ok());
  clock.Advance({INT64_MAX / 2});
  EXPECT_TRUE(Ask(limiter, kLimitMax).status.ok());
}

}  // namespace
}  // namespace plumb::tenancy
