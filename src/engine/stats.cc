// engine/stats.cc
// Atomics to a snapshot. The values are read one after the other, not at one moment.
#include "engine/stats.h"

namespace plumb::engine {

EngineStats EngineCounters::Read(uint32_t pages_total) const {
  EngineStats stats;
  stats.running = running.load(std::memory_order_relaxed);
  stats.waiting = waiting.load(std::memory_order_relaxed);
  stats.pages_used = pages_used.load(std::memory_order_relaxed);
  stats.pages_cached = pages_cached.load(std::memory_order_relaxed);
  stats.pages_hinted = pages_hinted.load(std::memory_order_relaxed);
  stats.pages_total = pages_total;
  stats.checkpoints = checkpoints.load(std::memory_order_relaxed);
  stats.requests = requests.load(std::memory_order_relaxed);
  stats.requests_refused = requests_refused.load(std::memory_order_relaxed);
  stats.samples_stop = samples_stop.load(std::memory_order_relaxed);
  stats.samples_length = samples_length.load(std::memory_order_relaxed);
  stats.samples_cancelled = samples_cancelled.load(std::memory_order_relaxed);
  stats.samples_error = samples_error.load(std::memory_order_relaxed);
  stats.prompt_tokens = prompt_tokens.load(std::memory_order_relaxed);
  stats.generated_tokens = generated_tokens.load(std::memory_order_relaxed);
  stats.computed_rows = computed_rows.load(std::memory_order_relaxed);
  stats.steps = steps.load(std::memory_order_relaxed);
  stats.draft_rows = draft_rows.load(std::memory_order_relaxed);
  stats.drafts_kept = drafts_kept.load(std::memory_order_relaxed);
  stats.requests_failed_by_watchdog = requests_failed_by_watchdog.load(std::memory_order_relaxed);
  stats.embeddings = embeddings.load(std::memory_order_relaxed);
  stats.preemptions = preemptions.load(std::memory_order_relaxed);
  stats.prefix_hits = prefix_hits.load(std::memory_order_relaxed);
  stats.cached_tokens = cached_tokens.load(std::memory_order_relaxed);
  stats.page_evictions = page_evictions.load(std::memory_order_relaxed);
  stats.hinted_evictions = hinted_evictions.load(std::memory_order_relaxed);
  stats.checkpoints_stored = checkpoints_stored.load(std::memory_order_relaxed);
  stats.checkpoint_hits = checkpoint_hits.load(std::memory_order_relaxed);
  stats.checkpoint_evictions = checkpoint_evictions.load(std::memory_order_relaxed);
  stats.busy_seconds = static_cast<double>(busy_ns.load(std::memory_order_relaxed)) * 1e-9;
  return stats;
}

}  // namespace plumb::engine
