// base/bounded_queue_test.cc: order, the maximum, closing, and several threads at once.
// The one about threads passes ten thousand values through a queue of sixteen.
#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"

namespace plumb::base {
namespace {

TEST(BoundedQueue, KeepsOrderAndRefusesBeyondItsMaximum) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.Push(2));
  EXPECT_FALSE(queue.Push(3));
  EXPECT_EQ(queue.TryPop(), 1);
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.TryPop(), std::nullopt);
}

TEST(BoundedQueue, LeavesARefusedValueWithTheCaller) {
  BoundedQueue<std::unique_ptr<int>> queue(0);
  auto value = std::make_unique<int>(5);
  EXPECT_FALSE(queue.Push(std::move(value)));
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(*value, 5);
}

TEST(BoundedQueue, DrainsWhatIsLeftAfterClose) {
  BoundedQueue<int> queue(4);
  EXPECT_TRUE(queue.Push(1));
  queue.Close();
  EXPECT_FALSE(queue.Push(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueue, PassesEveryValueOnceBetweenThreads) {
  constexpr int kValues = 10000;
  BoundedQueue<int> queue(16);
  std::vector<int> seen(kValues, 0);
  Thread consumer("consumer", [&] {
    while (auto value = queue.Pop()) ++seen[static_cast<size_t>(*value)];
  });
  for (int value = 0; value < kValues; ++value) {
    while (!queue.Push(int{value})) {
    }
  }
  queue.Close();
  consumer.Join();
  for (int count : seen) EXPECT_EQ(count, 1);
}

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const Instant start = clock.Now();
  clock.Advance(Milliseconds(1500));
  EXPECT_EQ((clock.Now() - start).ms(), 1500);
  EXPECT_EQ(clock.UnixSeconds(), 1);
}

TEST(SystemClock, NeverGoesBack) {
  SystemClock clock;
  const Instant first = clock.Now();
  EXPECT_GE(clock.Now(), first);
  EXPECT_GT(clock.UnixSeconds(), 1'700'000'000);
}

TEST(ThreadDeathTest, ForgottenJoinIsABug) {
  EXPECT_DEATH({ Thread thread("forgotten", [] {}); }, "was not joined");
}

TEST(UsableProcessors, IsAtLeastOne) { EXPECT_GE(UsableProcessors(), 1u); }

}  // namespace
}  // namespace plumb::base
