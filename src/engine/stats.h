// engine/stats.h
// What the engine says of itself: counters that its threads raise, and a snapshot for whoever
// exports them. Counters only grow; gauges say how it is now.
#pragma once

#include <atomic>
#include <cstdint>

namespace plumb::engine {

struct EngineStats {
  // Gauges.
  uint32_t running = 0;       // samples
  uint32_t waiting = 0;       // samples accepted and not started, or preempted
  uint32_t pages_used = 0;    // by running samples
  uint32_t pages_cached = 0;  // kept for reuse, used by nobody
  uint32_t pages_hinted = 0;  // with a hint to keep them, used or not
  uint32_t pages_total = 0;
  uint32_t checkpoints = 0;  // kept, of models that need them to go on from a page boundary
  // Memory that is set aside, whether it is used or not (MemoryPlan).
  uint64_t page_bytes = 0, state_bytes = 0, checkpoint_bytes = 0;
  // Counters.
  uint64_t requests = 0;          // accepted
  uint64_t requests_refused = 0;  // kOverloaded or kUnavailable
  uint64_t samples_stop = 0, samples_length = 0, samples_cancelled = 0, samples_error = 0;
  uint64_t prompt_tokens = 0;  // of started samples
  uint64_t generated_tokens = 0;
  uint64_t embeddings = 0;     // of prompts, whole
  uint64_t computed_rows = 0;  // prompt and decode rows, recomputation included
  uint64_t steps = 0;
  uint64_t draft_rows = 0;   // computed for guesses of what follows
  uint64_t drafts_kept = 0;  // guesses that were right
  uint64_t requests_failed_by_watchdog = 0;
  uint64_t preemptions = 0;
  uint64_t prefix_hits = 0;           // samples that reused computed tokens
  uint64_t cached_tokens = 0;         // prompt tokens of samples, reused instead of computed
  uint64_t page_evictions = 0;        // of cached pages
  uint64_t hinted_evictions = 0;      // of them, in spite of a hint
  uint64_t checkpoints_stored = 0;    // ever
  uint64_t checkpoint_hits = 0;       // sequences that went on from one, after preemption too
  uint64_t checkpoint_evictions = 0;  // for want of room; those of evicted pages not included
  double busy_seconds = 0;            // in steps
};

// The atomics behind EngineStats. Thread: any.
struct EngineCounters {
  std::atomic<uint32_t> running{0}, waiting{0}, pages_used{0}, pages_cached{0};
  std::atomic<uint32_t> pages_hinted{0};
  std::atomic<uint32_t> checkpoints{0};
  std::atomic<uint64_t> requests{0}, requests_refused{0};
  std::atomic<uint64_t> samples_stop{0}, samples_length{0}, samples_cancelled{0}, samples_error{0};
  std::atomic<uint64_t> prompt_tokens{0}, generated_tokens{0}, computed_rows{0};
  std::atomic<uint64_t> embeddings{0};
  std::atomic<uint64_t> steps{0}, preemptions{0};
  std::atomic<uint64_t> draft_rows{0}, drafts_kept{0}, requests_failed_by_watchdog{0};
  std::atomic<uint64_t> prefix_hits{0}, cached_tokens{0}, page_evictions{0};
  std::atomic<uint64_t> hinted_evictions{0};
  std::atomic<uint64_t> checkpoints_stored{0}, checkpoint_hits{0}, checkpoint_evictions{0};
  std::atomic<int64_t> busy_ns{0};

  EngineStats Read(uint32_t pages_total) const;
};

}  // namespace plumb::engine
