// cli/trace_file_test.cc
// The file parses, and says of each span where, when and how long it was.
#include "cli/trace_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace plumb::cli {
namespace {

using engine::TracePhase;

engine::TraceSpan Span(TracePhase phase, uint64_t step, int64_t begin_us, int64_t end_us) {
  engine::TraceSpan span{.phase = phase, .step = step, .rows = 3};
  span.begin = base::Instant{} + base::Duration{begin_us * 1000};
  span.end = base::Instant{} + base::Duration{end_us * 1000};
  return span;
}

TEST(ChromeTrace, ShowsTheEngineAndTheHostOnThreadsOfTheirOwn) {
  // The order of recording is that of the ends.
  const std::vector<engine::TraceSpan> spans = {Span(TracePhase::kPublish, 6, 1500, 1700),
                                                Span(TracePhase::kForward, 7, 1000, 2000)};
  const auto json = nlohmann::json::parse(ChromeTrace(spans));
  const auto& events = json["traceEvents"];
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["args"]["name"], "engine");
  EXPECT_EQ(events[1]["args"]["name"], "host");
  EXPECT_EQ(events[2]["tid"], events[1]["tid"]);
  EXPECT_EQ(events[2]["name"], engine::TracePhaseName(TracePhase::kPublish));
  EXPECT_EQ(events[2]["ts"], 500);
  EXPECT_EQ(events[2]["dur"], 200);
  EXPECT_EQ(events[3]["tid"], events[0]["tid"]);
  EXPECT_EQ(events[3]["ts"], 0) << "times count from the first";
  EXPECT_EQ(events[3]["dur"], 1000);
  EXPECT_EQ(events[3]["args"]["step"], 7);
  EXPECT_EQ(events[3]["args"]["rows"], 3);
  EXPECT_EQ(TraceSummary("t.json", spans),
            "2 spans in t.json; 100 % of the host's work ran beside a forward");
}

TEST(ChromeTrace, OfNothingIsStillAFile) {
  EXPECT_EQ(nlohmann::json::parse(ChromeTrace({}))["traceEvents"].size(), 2u);
}

}  // namespace
}  // namespace plumb::cli
