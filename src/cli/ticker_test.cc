// cli/ticker_test.cc
// It ticks until it ends.
#include "cli/ticker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace plumb::cli {
namespace {

TEST(Ticker, CallsUntilItIsDestroyed) {
  std::latch ticked(2);
  std::atomic<uint32_t> ticks{0};
  {
    const Ticker ticker([&] {
      if (++ticks <= 2) ticked.count_down();
    });
    ticked.wait();
  }
  EXPECT_GE(ticks, 2u);
}

}  // namespace
}  // namespace plumb::cli
