// engine/stall_watch_test.cc: what counts as standing still, and when it is told.
// With an engine: engine_async_test.cc.
#include "engine/stall_watch.h"

#include <gtest/gtest.h>

namespace plumb::engine {
namespace {

TEST(StallLooks, SeveralMustFindTheSame) {
  StallLooks looks;
  EXPECT_FALSE(looks.StandsStill(7));
  EXPECT_FALSE(looks.StandsStill(7));
  EXPECT_FALSE(looks.StandsStill(7));
  EXPECT_TRUE(looks.StandsStill(7));
  EXPECT_TRUE(looks.StandsStill(7));
  EXPECT_FALSE(looks.StandsStill(8)) << "it goes on";
  EXPECT_FALSE(looks.StandsStill(8));
}

TEST(StallLooks, WhoHasNothingToDoIsNotStandingStill) {
  StallLooks looks;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(looks.StandsStill(7));
  looks.Rests();
  EXPECT_FALSE(looks.StandsStill(7));
}

// One real thread that looks; the clock is ours.
TEST(StallWatch, AHostThatHangsIsToldOnceAndForgottenWhenItGoesOn) {
  base::ManualClock clock;
  std::atomic<bool> busy{true};
  std::atomic<int64_t> progress{0};
  std::atomic<int> failed{0};
  StallWatch watch({.clock = clock,
                    .limit = base::Milliseconds(40),
                    .engine_hangs = [] { return false; },
                    .host_busy = [&] { return busy.load(); },
                    .host_progress = [&] { return progress.load(); },
                    // The first time it cannot.
                    .fail_all = [&] { return ++failed > 1; }});
  watch.Start();
  while (failed < 2) clock.Advance(base::Milliseconds(41));
  EXPECT_TRUE(watch.host_hangs());
  ++progress;
  while (watch.host_hangs()) {
  }
  while (!watch.host_hangs()) clock.Advance(base::Milliseconds(41));
  busy = false;
  while (watch.host_hangs()) {
  }
  watch.Stop();
  EXPECT_EQ(failed, 3) << "once for each time";
}

TEST(StallWatch, WithoutALimitNothingIsLookedAt) {
  const base::ManualClock clock;
  StallWatch watch({.clock = clock,
                    .engine_hangs = [] { return true; },
                    .host_busy = [] { return true; },
                    .host_progress = [] { return int64_t{0}; },
                    .fail_all = [] { return true; }});
  watch.Start();
  watch.Stop();
  EXPECT_FALSE(watch.host_hangs());
}

}  // namespace
}  // namespace plumb::engine
