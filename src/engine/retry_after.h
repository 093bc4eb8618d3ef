// engine/retry_after.h
// When to come back: what a refused caller is told, from how fast waiting sequences have been
// getting their turn. Each refusal promises the next place that becomes free, so that those who are
// told to come back do not all come at once.
// Thread: Observe: one (the engine's); Refuse: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace plumb::engine {

class RetryAfter {
 public:
  static constexpr uint32_t kLeastMs = 1'000, kMostMs = 60'000;

  // A step took `elapsed`, and in all `started` sequences have begun to run until now
  // (Scheduler::starts()).
  void Observe(uint64_t started, base::Duration elapsed);

  // For one more caller, in [kLeastMs, kMostMs].
  uint32_t Refuse();

  // The estimate for one that is the `ahead`-th to come back.
  static uint32_t Estimate(double interval_ns, uint64_t ahead);

 private:
  // Engine thread: sums that fade over about kFade of busy time.
  double starts_ = 0, elapsed_ns_ = 0;
  uint64_t started_ = 0;
  // Shared.
  std::atomic<double> interval_ns_{0};  // between two starts
  std::atomic<uint32_t> promised_{0};   // places
};

}  // namespace plumb::engine
