// engine/stats.h
// What the engine says of itself: counters that its thread raises, and a snapshot for whoever
// exports them. Counters only grow; gauges say how it is now.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace plumb::engine {

// Upper bounds of the latency buckets in seconds; one more bucket holds the rest.
constexpr std::array<double, 14> kLatencyBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                   0.25,  0.5,    1,     2.5,  5,     10,   60};

// A snapshot. `buckets[i]` counts values in (bound i-1, bound i]; not cumulative.
struct LatencyStats {
  std::array<uint64_t, kLatencyBounds.size() + 1> buckets{};
  uint64_t count = 0;
  double sum_seconds = 0;
};

// Thread: one adds (engine), any reads; a reader may see a value in `buckets` just before `count`.
class LatencyHistogram {
 public:
  void Add(base::Duration duration) {
    size_t bucket = 0;
    while (bucket < kLatencyBounds.size() && duration.seconds() > kLatencyBounds[bucket]) ++bucket;
    buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(duration.ns, std::memory_order_relaxed);
  }
  LatencyStats Read() const {
    LatencyStats stats;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      stats.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
      stats.count += stats.buckets[i];
    }
    stats.sum_seconds = base::Duration{sum_ns_.load(std::memory_order_relaxed)}.seconds();
    return stats;
  }

 private:
  std::array<std::atomic<uint64_t>, kLatencyBounds.size() + 1> buckets_{};
  std::atomic<int64_t> sum_ns_{0};
};

struct EngineStats {
  // Gauges.
  uint32_t running = 0;  // samples
  uint32_t waiting = 0;  // samples accepted and not started, or preempted
  uint32_t pages_used = 0;
  uint32_t pages_total = 0;
  // Counters.
  uint64_t requests = 0;          // accepted
  uint64_t requests_refused = 0;  // kOverloaded or kUnavailable
  uint64_t samples_stop = 0, samples_length = 0, samples_cancelled = 0, samples_error = 0;
  uint64_t prompt_tokens = 0;  // of started samples
  uint64_t generated_tokens = 0;
  uint64_t computed_rows = 0;  // prompt and decode rows, recomputation included
  uint64_t steps = 0;
  uint64_t preemptions = 0;
  double busy_seconds = 0;           // in steps
  LatencyStats time_to_first_token;  // from Submit, by sample
  LatencyStats inter_token;
  LatencyStats step;
};

// The atomics behind EngineStats. Thread: any reads; the engine's writes, but requests_*: any.
struct EngineCounters {
  std::atomic<uint32_t> running{0}, waiting{0}, pages_used{0};
  std::atomic<uint64_t> requests{0}, requests_refused{0};
  std::atomic<uint64_t> samples_stop{0}, samples_length{0}, samples_cancelled{0}, samples_error{0};
  std::atomic<uint64_t> prompt_tokens{0}, generated_tokens{0}, computed_rows{0};
  std::atomic<uint64_t> steps{0}, preemptions{0};
  std::atomic<int64_t> busy_ns{0};
  LatencyHistogram time_to_first_token, inter_token, step;

  EngineStats Read(uint32_t pages_total) const;
};

}  // namespace plumb::engine
