// cli/serve_metrics_test.cc
// What the server counts for itself is what /metrics shows.
#include "cli/serve_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace plumb::cli {
namespace {

using testing::HasSubstr;

TEST(CopyMetrics, ShowsWhatTheServerCounts) {
  telemetry::Metrics metrics({"/health"}, "1.0", "model");
  const net::HttpServerStats server{.connections_open = 11,
                                    .connections_refused = 12,
                                    .connections_displaced = 13,
                                    .refusals = 14,
                                    .disconnects = 15,
                                    .write_stalls = 16};
  CopyMetrics({}, server, metrics);
  const std::string page = metrics.Expose();
  for (const char* line :
       {"plumb_http_connections_open 11", "plumb_http_connections_refused_total 12",
        "plumb_http_connections_displaced_total 13", "plumb_http_refusals_total 14",
        "plumb_http_disconnects_total 15", "plumb_http_write_stalls_total 16"})
    EXPECT_THAT(page, HasSubstr(line));
}

}  // namespace
}  // namespace plumb::cli
