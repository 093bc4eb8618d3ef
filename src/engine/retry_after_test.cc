// engine/retry_after_test.cc
// What refused callers are told, from how fast others get their turn.
#include "engine/retry_after.h"

#include <gtest/gtest.h>

namespace plumb::engine {
namespace {

TEST(RetryAfter, IsTheTimeOfTheNextPlaceWithinItsBounds) {
  RetryAfter retry;
  EXPECT_EQ(retry.Refuse(), RetryAfter::kLeastMs) << "nothing is known";
  // One starts every five seconds.
  uint64_t started = 0;
  for (int step = 1; step <= 1000; ++step) {
    if (step % 50 == 0) ++started;
    retry.Observe(started, base::Milliseconds(100));
  }
  const uint32_t first = retry.Refuse();
  EXPECT_NEAR(first, 5000, 1500);
  // The next caller is told the place after.
  EXPECT_NEAR(retry.Refuse(), 2 * first, 1);
  for (int i = 0; i < 10'000; ++i) EXPECT_LE(retry.Refuse(), RetryAfter::kMostMs);
  EXPECT_EQ(retry.Refuse(), RetryAfter::kMostMs);
  // A flood is over when as many have had their turn as fit the longest time.
  for (int i = 0; i < 20; ++i) retry.Observe(++started, base::Seconds(5));
  EXPECT_LE(retry.Refuse(), 2 * first);
}

TEST(RetryAfter, GrowsWhileNobodyStarts) {
  RetryAfter retry;
  for (int step = 0; step < 300; ++step) retry.Observe(0, base::Milliseconds(100));
  EXPECT_GT(retry.Refuse(), 10'000u);
}

}  // namespace
}  // namespace plumb::engine
