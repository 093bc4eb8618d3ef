// tensor/thread_pool_test.cc: every item once, whatever the number of threads and rounds.
// Short spins make workers sleep, so that waking is tested too.
#include "tensor/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "tensor/caller_pin.h"

namespace plumb::tensor {
namespace {

TEST(ThreadPool, CallsEveryItemOnce) {
  for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool({.threads = threads});
    EXPECT_EQ(pool.threads(), threads);
    for (const uint32_t items : {0u, 1u, 2u, 7u, 1000u}) {
      std::vector<uint32_t> calls(items);
      pool.ParallelFor(items, [&](uint32_t item) { ++calls[item]; });
      EXPECT_EQ(calls, std::vector<uint32_t>(items, 1));
    }
  }
}

TEST(ThreadPool, WorkOfOneRoundIsVisibleInTheNext) {
  ThreadPool pool({.threads = 4, .spin_pauses = 10});
  std::vector<uint64_t> values(64);
  constexpr uint64_t kRounds = 3000;
  for (uint64_t round = 0; round < kRounds; ++round) {
    pool.ParallelFor(64, [&](uint32_t item) { values[(item + round) % 64] += item; });
  }
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), uint64_t{0}), kRounds * 63 * 64 / 2);
}

TEST(ThreadPool, SleepingAndPinnedWorkersStillServe) {
  ThreadPool pool({.threads = 3, .pin = true, .spin_pauses = 0});
  std::atomic<uint32_t> sum{0};
  for (int round = 0; round < 50; ++round) {
    pool.ParallelFor(10, [&](uint32_t item) { sum += item; });
  }
  EXPECT_EQ(sum, 50u * 45u);
}

// By processor: where each thread of a round may run. Every item waits until each thread has one.
std::vector<std::vector<uint32_t>> AllowedOfThreads(ThreadPool& pool) {
  std::vector<std::vector<uint32_t>> allowed(pool.threads());
  std::atomic<uint32_t> arrived{0};
  pool.ParallelFor(pool.threads(), [&](uint32_t item) {
    allowed[item] = base::AllowedProcessors();
    ++arrived;
    while (arrived != pool.threads()) std::this_thread::yield();
  });
  std::sort(allowed.begin(), allowed.end());
  return allowed;
}

TEST(ThreadPool, PinnedThreadsAndTheCallerHaveAProcessorEach) {
  const std::vector<uint32_t> all = base::AllowedProcessors();
  const auto threads = static_cast<uint32_t>(std::min<size_t>(all.size(), 8));
  if (threads < 2) GTEST_SKIP() << "one processor: all threads share it";
  std::vector<std::vector<uint32_t>> apart;
  for (uint32_t i = 0; i < threads; ++i) apart.push_back({all[i]});
  ThreadPool pool({.threads = threads, .pin = true});
  {
    const CallerPin pin(&pool);
    EXPECT_EQ(AllowedOfThreads(pool), apart);
    EXPECT_EQ(base::AllowedProcessors(), apart[0]);
  }
  EXPECT_EQ(base::AllowedProcessors(), all) << "the caller is free again";
}

TEST(ThreadPool, WithoutPinningNobodyIsBound) {
  const std::vector<uint32_t> all = base::AllowedProcessors();
  ThreadPool pool({.threads = 3});
  const CallerPin pin(&pool), none(nullptr);
  EXPECT_EQ(AllowedOfThreads(pool), (std::vector<std::vector<uint32_t>>(3, all)));
}

TEST(ThreadPool, ThreadCountIsClamped) { EXPECT_EQ(ThreadPool({.threads = 0}).threads(), 1u); }

TEST(ThreadPoolDeathTest, NestingIsABug) {
  ThreadPool pool({.threads = 1});
  EXPECT_DEATH(pool.ParallelFor(1, [&](uint32_t) { pool.ParallelFor(1, [](uint32_t) {}); }),
               "ParallelFor inside ParallelFor");
}

}  // namespace
}  // namespace plumb::tensor
