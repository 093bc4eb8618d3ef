// telemetry/metrics_test.cc
// What is counted is what is shown, labels stay bounded, and counting needs no lock.
#include "telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/thread.h"

namespace plumb::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Histogram, CountsEachValueInItsBucket) {
  const std::vector<double> bounds = {1.0, 2.0, 4.0};
  Histogram histogram(bounds);
  for (double value : {-1.0, 0.5, 1.0, 1.5, 4.0, 4.5, std::numeric_limits<double>::infinity()}) {
    histogram.Observe(value);
  }
  histogram.Observe(std::nan(""));
  const Histogram::Snapshot snapshot = histogram.snapshot();
  EXPECT_THAT(snapshot.bounds, ElementsAre(1.0, 2.0, 4.0));
  EXPECT_THAT(snapshot.counts, ElementsAre(3u, 1u, 1u, 2u));
  EXPECT_EQ(snapshot.count, 7u);

  Histogram seconds(bounds);
  seconds.Observe(base::Milliseconds(1500));
  EXPECT_THAT(seconds.snapshot().counts, ElementsAre(0u, 1u, 0u, 0u));
  EXPECT_DOUBLE_EQ(seconds.snapshot().sum, 1.5);
}

TEST(Histogram, LosesNothingUnderContention) {
  const std::vector<double> bounds = {1.0, 2.0};
  Histogram histogram(bounds);
  Counter counter;
  constexpr int kThreads = 4;
  constexpr int kEach = 20000;
  {
    std::vector<base::Thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back("observer", [&] {
        for (int i = 0; i < kEach; ++i) {
          histogram.Observe(static_cast<double>(i % 4));
          counter.Add(2);
        }
      });
    }
    for (base::Thread& thread : threads) thread.Join();
  }
  constexpr uint64_t kQuarter = kThreads * kEach / 4;
  EXPECT_THAT(histogram.snapshot().counts, ElementsAre(2 * kQuarter, kQuarter, kQuarter));
  EXPECT_DOUBLE_EQ(histogram.snapshot().sum, 6.0 * kQuarter);
  EXPECT_EQ(counter.value(), 2u * kThreads * kEach);
}

TEST(CounterGrid, CountsUnknownValuesAsOther) {
  CounterGrid grid({"route", {"/a", "/b"}}, {"code", {"200"}});
  grid.At("/a", "200").Add();
  grid.At("/from-a-client", "999").Add();
  grid.At("/from-another", "998").Add();
  grid.At("other", "200").Add();
  EXPECT_EQ(grid.AtIndex(0, 0).value(), 1u);
  EXPECT_EQ(grid.AtIndex(2, 1).value(), 2u);
  EXPECT_EQ(grid.AtIndex(2, 0).value(), 1u);
  EXPECT_EQ(grid.first().values.size(), 3u) << "the set does not grow";
}

TEST(Metrics, ShowsWhatWasRecorded) {
  Metrics metrics({"/v1/chat/completions", "/health"}, "0.1.0", "a \"quoted\"\nmodel");
  metrics.api.CountRequest("/v1/chat/completions", 200);
  metrics.api.CountRequest("/v1/chat/completions", 200);
  metrics.api.CountRequest("/etc/passwd", 404);
  metrics.api.CountRequest("/health", 299);
  metrics.api.connections_open.Set(3);
  metrics.api.disconnects.SetTotal(7);
  metrics.api.token_cache_hit_bytes.SetTotal(190000);
  metrics.api.token_cache_miss_bytes.SetTotal(10000);
  metrics.api.token_cache_bytes.Set(4096);
  metrics.api.token_cache_entries.Set(40);
  metrics.engine.first_token_seconds.Observe(0.05);
  metrics.engine.first_token_seconds.Observe(1000.0);
  metrics.engine.completion_tokens.Add(12345678);
  metrics.engine.embeddings.Add(9);
  metrics.engine.samples_finished.At("stop").Add();
  metrics.engine.pages_used.Set(4);
  metrics.engine.pages_used.Add(-1);

  const std::string text = metrics.Expose();
  for (const char* line : {
           "plumb_http_requests_total{route=\"/v1/chat/completions\",code=\"200\"} 2\n",
           "plumb_http_requests_total{route=\"other\",code=\"404\"} 1\n",
           "plumb_http_requests_total{route=\"/health\",code=\"other\"} 1\n",
           "# TYPE plumb_http_requests_total counter\n",
           "plumb_http_connections_open 3\n",
           "plumb_http_disconnects_total 7\n",
           "plumb_token_cache_hit_bytes_total 190000\n",
           "plumb_token_cache_miss_bytes_total 10000\n",
           "plumb_token_cache_memory_bytes 4096\n",
           "plumb_token_cache_entries 40\n",
           "# TYPE plumb_first_token_seconds histogram\n",
           "plumb_first_token_seconds_count 2\n",
           "plumb_first_token_seconds_sum 1000.05\n",
           "plumb_first_token_seconds_bucket{le=\"0.04\"} 0\n",
           "plumb_first_token_seconds_bucket{le=\"0.08\"} 1\n",
           "plumb_first_token_seconds_bucket{le=\"+Inf\"} 2\n",
           "plumb_completion_tokens_total 12345678\n",
           "plumb_embeddings_total 9\n",
           "plumb_samples_finished_total{reason=\"stop\"} 1\n",
           "plumb_pages_used 3\n",
           "plumb_build_info{version=\"0.1.0\",model=\"a \\\"quoted\\\"\\nmodel\"} 1\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("passwd")));
}

// Every line is a comment or `name{labels} value`, and every name is ours and explained.
TEST(Metrics, EveryNameIsOursAndExplained) {
  Metrics metrics({"/a"}, "0", "m");
  metrics.api.CountRequest("/a", 200);
  const std::string text = metrics.Expose();
  size_t lines = 0;
  for (size_t at = 0; at < text.size(); ++lines) {
    const size_t end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos) << "the last line ends too";
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("#")) {
      EXPECT_TRUE(line.starts_with("# HELP plumb_") || line.starts_with("# TYPE plumb_")) << line;
      continue;
    }
    EXPECT_TRUE(line.starts_with("plumb_")) << line;
  }
  EXPECT_GT(lines, 100u);
}

}  // namespace
}  // namespace plumb::telemetry
