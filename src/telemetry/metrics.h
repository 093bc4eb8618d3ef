// telemetry/metrics.h
// Every number that plumb shows, by name, and their text for GET /metrics (Prometheus exposition
// format 0.0.4). One Metrics object, built by cli and given to api and engine by reference; each
// records into the part that is its own, without knowing who reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "telemetry/instruments.h"

namespace plumb::telemetry {

// Recorded by api.
struct ApiMetrics {
  // `routes`: the route patterns ("/v1/chat/completions"), never paths as clients send them.
  explicit ApiMetrics(std::vector<std::string> routes);

  CounterGrid requests;       // plumb_http_requests_total{route,code}, when the answer is complete
  Histogram request_seconds;  // request whole to answer complete
  // Copied from net's counts before they are shown.
  Gauge connections_open;
  Counter connections_refused;
  Counter connections_displaced;
  Counter http_refusals;  // answered by net itself: malformed, too large, too slow, draining
  Counter disconnects;
  Counter write_stalls;
  // Copied from the token cache likewise (text/token_cache.h).
  Counter token_cache_hit_bytes;   // of prompt texts whose tokens were remembered
  Counter token_cache_miss_bytes;  // of those that were tokenised
  Gauge token_cache_bytes;         // held
  Gauge token_cache_entries;

  void CountRequest(std::string_view route, int status) {
    requests.At(route, std::to_string(status)).Add();
  }
};

// Recorded by the engine (any implementation of Generator).
struct EngineMetrics {
  EngineMetrics();

  Histogram first_token_seconds;  // Submit to the sample's first token
  Histogram inter_token_seconds;  // between two tokens of one sample
  Histogram step_seconds;         // one step of the loop
  Histogram step_tokens;          // rows in one step
  Counter prompt_tokens;          // computed or cached
  Counter cached_tokens;          // prompt tokens not computed again
  Counter prefix_hits;            // samples that had such
  Counter page_evictions;         // of cached pages
  Counter hinted_evictions;       // of them, in spite of a hint to keep them
  Counter completion_tokens;
  Counter embeddings;
  CounterGrid samples_finished;  // plumb_samples_finished_total{reason}
  Counter preemptions;
  Counter draft_rows;         // computed for guesses of what follows
  Counter drafts_kept;        // guesses that were right
  Counter watchdog_failures;  // requests failed because the engine made no progress
  Gauge requests_running;     // have pages
  Gauge requests_waiting;     // accepted, not yet begun
  Gauge pages_total;
  Gauge pages_used;    // referred to by a running request
  Gauge pages_cached;  // kept for reuse, evictable
  Gauge pages_hinted;  // with a caller's hint to keep them, used or cached
  // Memory that is set aside, whether it is in use or not.
  Gauge page_bytes, state_bytes, checkpoint_bytes;
  // Of models that need one beside the pages to go on from what is cached.
  Gauge checkpoints;
  Counter checkpoints_stored;
  Counter checkpoint_hits;       // sequences that went on from one
  Counter checkpoint_evictions;  // for want of room
};

// A resource type. Thread: any, after construction.
class Metrics {
 public:
  // `version` and `model` become labels of plumb_build_info.
  Metrics(std::vector<std::string> routes, std::string version, std::string model);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  ApiMetrics api;
  EngineMetrics engine;

  std::string Expose() const;

 private:
  const std::string version_;
  const std::string model_;
};

// The Content-Type that goes with Expose.
constexpr std::string_view kExpositionContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace plumb::telemetry
