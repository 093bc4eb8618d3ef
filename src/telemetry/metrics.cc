// telemetry/metrics.cc
// Names, help texts and buckets in one place, and the turn into prometheus-cpp's families, whose
// serializer writes the text.
#include "telemetry/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <limits>
#include <utility>

namespace plumb::telemetry {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Seconds. Fine where a person notices, coarse above.
constexpr std::array kRequestBounds = {0.005, 0.01, 0.025, 0.05, 0.1,  0.25,  0.5,  1.0,
                                       2.5,   5.0,  10.0,  30.0, 60.0, 120.0, 300.0};
constexpr std::array kFirstTokenBounds = {0.005, 0.01, 0.02, 0.04,  0.08,  0.16,  0.32, 0.64,
                                          1.28,  2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
constexpr std::array kInterTokenBounds = {0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04,
                                          0.06,  0.08,   0.1,   0.15, 0.2,   0.4,  0.8,  1.6};
constexpr std::array kStepTokenBounds = {1.0,  2.0,   4.0,   8.0,   16.0,   32.0,
                                         64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0};

std::vector<std::string> KnownCodes() {
  std::vector<std::string> codes;
  for (int code : {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 408, 409, 413,
                   414, 415, 422, 429, 431, 499, 500, 501, 502, 503, 504, 529}) {
    codes.push_back(std::to_string(code));
  }
  return codes;
}

// Collects families in the order of the calls.
class Page {
 public:
  void Add(const char* name, const char* help, const Counter& counter) {
    ClientMetric metric;
    metric.counter.value = static_cast<double>(counter.value());
    Family(name, help, MetricType::Counter).metric.push_back(std::move(metric));
  }
  void Add(const char* name, const char* help, const Gauge& gauge) {
    ClientMetric metric;
    metric.gauge.value = static_cast<double>(gauge.value());
    Family(name, help, MetricType::Gauge).metric.push_back(std::move(metric));
  }
  void Add(const char* name, const char* help, const Histogram& histogram) {
    const Histogram::Snapshot snapshot = histogram.snapshot();
    ClientMetric metric;
    metric.histogram.sample_count = snapshot.count;
    metric.histogram.sample_sum = snapshot.sum;
    uint64_t cumulative = 0;
    for (size_t i = 0; i < snapshot.counts.size(); ++i) {
      cumulative += snapshot.counts[i];
      const double bound =
          i < snapshot.bounds.size() ? snapshot.bounds[i] : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({cumulative, bound});
    }
    Family(name, help, MetricType::Histogram).metric.push_back(std::move(metric));
  }
  // Only counters that have counted: the grid is mostly empty.
  void Add(const char* name, const char* help, const CounterGrid& grid) {
    MetricFamily& family = Family(name, help, MetricType::Counter);
    for (size_t i = 0; i < grid.first().values.size(); ++i) {
      for (size_t j = 0; j < grid.second().values.size(); ++j) {
        const uint64_t value = grid.AtIndex(i, j).value();
        if (value == 0) continue;
        ClientMetric metric;
        metric.label.push_back({grid.first().name, grid.first().values[i]});
        if (!grid.second().name.empty()) {
          metric.label.push_back({grid.second().name, grid.second().values[j]});
        }
        metric.counter.value = static_cast<double>(value);
        family.metric.push_back(std::move(metric));
      }
    }
  }
  void AddInfo(const char* name, const char* help, std::vector<ClientMetric::Label> labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = 1;
    Family(name, help, MetricType::Gauge).metric.push_back(std::move(metric));
  }
  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  MetricFamily& Family(const char* name, const char* help, MetricType type) {
    families_.push_back({name, help, type, {}});
    return families_.back();
  }
  std::vector<MetricFamily> families_;
};

void AddApi(Page& page, const ApiMetrics& api) {
  page.Add("plumb_http_requests_total", "Answered requests by route and status code.",
           api.requests);
  page.Add("plumb_http_request_seconds", "From a whole request to its complete answer.",
           api.request_seconds);
  page.Add("plumb_http_connections_open", "Open client connections.", api.connections_open);
  page.Add("plumb_http_connections_refused_total", "Connections over the maximum.",
           api.connections_refused);
  page.Add("plumb_http_connections_displaced_total",
           "Connections without a whole header that were closed to make room for a new one.",
           api.connections_displaced);
  page.Add("plumb_http_refusals_total",
           "Requests answered before any route: malformed, too large, too slow, draining.",
           api.http_refusals);
  page.Add("plumb_http_disconnects_total", "Clients that left before their answer was complete.",
           api.disconnects);
  page.Add("plumb_http_write_stalls_total", "Connections cut because the client read too slowly.",
           api.write_stalls);
  page.Add("plumb_token_cache_hit_bytes_total", "Bytes of prompt texts whose tokens were known.",
           api.token_cache_hit_bytes);
  page.Add("plumb_token_cache_miss_bytes_total", "Bytes of prompt texts that were tokenised.",
           api.token_cache_miss_bytes);
  page.Add("plumb_token_cache_memory_bytes", "Memory held by the tokens of known texts.",
           api.token_cache_bytes);
  page.Add("plumb_token_cache_entries", "Known texts.", api.token_cache_entries);
}

void AddEngine(Page& page, const EngineMetrics& engine) {
  page.Add("plumb_first_token_seconds", "From acceptance to the first token of a sample.",
           engine.first_token_seconds);
  page.Add("plumb_inter_token_seconds", "Between two tokens of one sample.",
           engine.inter_token_seconds);
  page.Add("plumb_step_seconds", "Duration of one engine step.", engine.step_seconds);
  page.Add("plumb_step_tokens", "Tokens computed in one engine step.", engine.step_tokens);
  page.Add("plumb_prompt_tokens_total", "Prompt tokens of begun requests.", engine.prompt_tokens);
  page.Add("plumb_cached_tokens_total", "Prompt tokens taken from the cache, not computed.",
           engine.cached_tokens);
  page.Add("plumb_prefix_hits_total", "Samples that took prompt tokens from the cache.",
           engine.prefix_hits);
  page.Add("plumb_page_evictions_total", "Cached KV pages that were given up for others.",
           engine.page_evictions);
  page.Add("plumb_hinted_page_evictions_total",
           "Cached KV pages that were given up for others in spite of a caller's hint.",
           engine.hinted_evictions);
  page.Add("plumb_completion_tokens_total", "Generated tokens.", engine.completion_tokens);
  page.Add("plumb_samples_finished_total", "Finished samples by reason.", engine.samples_finished);
  page.Add("plumb_embeddings_total", "Embeddings of prompts.", engine.embeddings);
  page.Add("plumb_preemptions_total", "Running requests put back to waiting.", engine.preemptions);
  page.Add("plumb_draft_rows_total", "Rows computed for guesses of the next tokens.",
           engine.draft_rows);
  page.Add("plumb_drafts_kept_total", "Guesses that were the tokens sampled.", engine.drafts_kept);
  page.Add("plumb_watchdog_failures_total", "Requests failed because the engine did not go on.",
           engine.watchdog_failures);
  page.Add("plumb_requests_running", "Samples (answers) being computed: they hold pages.",
           engine.requests_running);
  page.Add("plumb_requests_waiting",
           "Accepted samples that hold no pages: not begun, or preempted.",
           engine.requests_waiting);
  page.Add("plumb_pages_total", "KV pages in the pool.", engine.pages_total);
  page.Add("plumb_pages_used", "KV pages that a running request refers to.", engine.pages_used);
  page.Add("plumb_pages_cached", "KV pages kept for reuse.", engine.pages_cached);
  page.Add("plumb_pages_hinted", "KV pages that a caller's hint retains, as long as there is room.",
           engine.pages_hinted);
  page.Add("plumb_page_memory_bytes", "Memory set aside for KV pages.", engine.page_bytes);
  page.Add("plumb_state_memory_bytes", "Memory set aside for what sequences have beside pages.",
           engine.state_bytes);
  page.Add("plumb_checkpoint_memory_bytes", "Memory set aside for checkpoints.",
           engine.checkpoint_bytes);
  page.Add("plumb_checkpoints", "Checkpoints kept, to go on from a cached page.",
           engine.checkpoints);
  page.Add("plumb_checkpoints_stored_total", "Checkpoints that were stored.",
           engine.checkpoints_stored);
  page.Add("plumb_checkpoint_hits_total", "Sequences that went on from a checkpoint.",
           engine.checkpoint_hits);
  page.Add("plumb_checkpoint_evictions_total", "Checkpoints that were given up for others.",
           engine.checkpoint_evictions);
}

}  // namespace

ApiMetrics::ApiMetrics(std::vector<std::string> routes)
    : requests({"route", std::move(routes)}, {"code", KnownCodes()}),
      request_seconds(kRequestBounds) {}

EngineMetrics::EngineMetrics()
    : first_token_seconds(kFirstTokenBounds),
      inter_token_seconds(kInterTokenBounds),
      step_seconds(kInterTokenBounds),
      step_tokens(kStepTokenBounds),
      samples_finished({"reason", {"stop", "length", "cancelled", "error"}}) {}

Metrics::Metrics(std::vector<std::string> routes, std::string version, std::string model)
    : api(std::move(routes)), version_(std::move(version)), model_(std::move(model)) {}

std::string Metrics::Expose() const {
  Page page;
  page.AddInfo("plumb_build_info", "Version and model of this process; always 1.",
               {{"version", version_}, {"model", model_}});
  AddApi(page, api);
  AddEngine(page, engine);
  return page.Text();
}

}  // namespace plumb::telemetry
