// cli/serve_metrics.cc
// One line for each number, behind cli/serve_metrics.h.
#include "cli/serve_metrics.h"

namespace plumb::cli {

void CopyMetrics(const engine::EngineStats& engine, const net::HttpServerStats& server,
                 telemetry::Metrics& metrics) {
  telemetry::EngineMetrics& to = metrics.engine;
  to.prompt_tokens.SetTotal(engine.prompt_tokens);
  to.cached_tokens.SetTotal(engine.cached_tokens);
  to.prefix_hits.SetTotal(engine.prefix_hits);
  to.page_evictions.SetTotal(engine.page_evictions);
  to.hinted_evictions.SetTotal(engine.hinted_evictions);
  to.completion_tokens.SetTotal(engine.generated_tokens);
  to.embeddings.SetTotal(engine.embeddings);
  to.samples_finished.At("stop").SetTotal(engine.samples_stop);
  to.samples_finished.At("length").SetTotal(engine.samples_length);
  to.samples_finished.At("cancelled").SetTotal(engine.samples_cancelled);
  to.samples_finished.At("error").SetTotal(engine.samples_error);
  to.preemptions.SetTotal(engine.preemptions);
  to.draft_rows.SetTotal(engine.draft_rows);
  to.drafts_kept.SetTotal(engine.drafts_kept);
  to.watchdog_failures.SetTotal(engine.requests_failed_by_watchdog);
  to.requests_running.Set(engine.running);
  to.requests_waiting.Set(engine.waiting);
  to.pages_total.Set(engine.pages_total);
  to.pages_used.Set(engine.pages_used);
  to.pages_cached.Set(engine.pages_cached);
  to.pages_hinted.Set(engine.pages_hinted);
  to.page_bytes.Set(static_cast<int64_t>(engine.page_bytes));
  to.state_bytes.Set(static_cast<int64_t>(engine.state_bytes));
  to.checkpoint_bytes.Set(static_cast<int64_t>(engine.checkpoint_bytes));
  to.checkpoints.Set(engine.checkpoints);
  to.checkpoints_stored.SetTotal(engine.checkpoints_stored);
  to.checkpoint_hits.SetTotal(engine.checkpoint_hits);
  to.checkpoint_evictions.SetTotal(engine.checkpoint_evictions);

  metrics.api.connections_open.Set(static_cast<int64_t>(server.connections_open));
  metrics.api.connections_refused.SetTotal(server.connections_refused);
  metrics.api.connections_displaced.SetTotal(server.connections_displaced);
  metrics.api.http_refusals.SetTotal(server.refusals);
  metrics.api.disconnects.SetTotal(server.disconnects);
  metrics.api.write_stalls.SetTotal(server.write_stalls);
}

}  // namespace plumb::cli
