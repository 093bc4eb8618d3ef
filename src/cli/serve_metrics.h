// cli/serve_metrics.h
// What engine and HTTP server count for themselves, copied into what /metrics shows.
#pragma once

#include "engine/stats.h"
#include "net/http_server.h"
#include "telemetry/metrics.h"

namespace plumb::cli {

// Thread: any; two at once may show a mixture of two moments.
void CopyMetrics(const engine::EngineStats& engine, const net::HttpServerStats& server,
                 telemetry::Metrics& metrics);

}  // namespace plumb::cli
