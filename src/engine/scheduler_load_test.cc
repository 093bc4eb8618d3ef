// engine/scheduler_load_test.cc
// Random load of every kind, in pools that are too small: every plan keeps what the scheduler
// promises, and every sequence ends. A failure names its seed, which replays it.
#include <gtest/gtest.h>

#include <vector>

#include "engine/scheduler_testing.h"

namespace plumb::engine {
namespace {

// Requests of every kind that come and go, with drafts and pauses, in pools that are too small.
class RandomLoad {
 public:
  explicit RandomLoad(uint64_t seed)
      : rng_(seed), pages_(Draw(3, 20)), limits_(DrawLimits()), world_(pages_, limits_) {
    world_.draft = [this](const Sequence&) { return rng_.Below(2) == 0 ? 0u : Draw(0, 16); };
    world_.keep = [this](uint32_t granted) { return Draw(0, granted); };
  }

  void Run() {
    int left = 40, steps = 0;
    while (left > 0 || !world_.Idle()) {
      if (left > 0 && rng_.Below(4) == 0) {
        AddOne();
        --left;
      }
      if (rng_.Below(30) == 0) RemoveOne();
      world_.scheduler().Pause(left > 0 && rng_.Below(40) == 0);
      const base::Duration elapsed = base::Milliseconds(Draw(0, 100));
      world_.Step(elapsed);
      if (testing::Test::HasFatalFailure()) return;
      ASSERT_LT(++steps, 100'000) << "no progress";
    }
    ASSERT_EQ(world_.pool().free(), world_.pool().total());
    for (const Sequence* sequence : all_) ASSERT_EQ(sequence->state, SequenceState::kEnded);
  }
  uint64_t preemptions() { return world_.scheduler().preemptions(); }

 private:
  uint32_t Draw(uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>(rng_.Below(most - least + 1));
  }
  SchedulerLimits DrawLimits() {
    SchedulerLimits limits;
    limits.sequences_max = Draw(1, 10);
    limits.rows_max = limits.sequences_max + Draw(0, 40);
    limits.logits_rows_max = limits.sequences_max + Draw(0, 20);
    limits.prefill_rows_max = Draw(1, 40);
    limits.waiting_max = 40;
    limits.step_target = base::Milliseconds(Draw(0, 2) * 30);
    limits.itl_target = base::Milliseconds(Draw(0, 2) * 20);
    return limits;
  }
  void AddOne() {
    const uint32_t length = Draw(2, pages_ * World::kPageTokens);
    const uint32_t prompt = Draw(1, length - 1);
    Sequence& sequence =
        world_.Add(prompt, length - prompt, static_cast<Priority>(Draw(0, 2)), rng_.Below(4));
    if (rng_.Below(5) == 0) sequence.logits_from = Draw(0, prompt);
    all_.push_back(&sequence);
  }
  void RemoveOne() {
    if (all_.empty()) return;
    Sequence& victim = *all_[rng_.Below(all_.size())];
    if (victim.state != SequenceState::kEnded) world_.scheduler().Remove(victim);
  }

  base::Rng rng_;
  const uint32_t pages_;
  const SchedulerLimits limits_;
  World world_;
  std::vector<Sequence*> all_;
};

TEST(Scheduler, EverySequenceEndsUnderRandomLoad) {
  uint64_t preemptions = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomLoad load(seed);
    load.Run();
    if (testing::Test::HasFatalFailure()) return;
    preemptions += load.preemptions();
  }
  EXPECT_GT(preemptions, 1000u);  // the loads do run out of pages
}

}  // namespace
}  // namespace plumb::engine
