// engine/trace_test.cc: the ring keeps the latest, scopes record what they should, and overlap is
// counted as it is.
#include "engine/trace.h"

#include <gtest/gtest.h>

namespace plumb::engine {
namespace {

TraceSpan Span(TracePhase phase, int64_t begin, int64_t end) {
  return {.phase = phase, .begin = {begin}, .end = {end}};
}

TEST(EngineTrace, KeepsTheLatestInOrder) {
  EngineTrace trace(3);
  EXPECT_TRUE(trace.Spans().empty());
  for (int64_t i = 0; i < 5; ++i) trace.Record(Span(TracePhase::kForward, i, i + 1));
  const auto spans = trace.Spans();
  ASSERT_EQ(spans.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(spans[static_cast<size_t>(i)].begin.ns, i + 2);
  EXPECT_EQ(trace.recorded(), 5u);
}

TEST(EngineTrace, AScopeRecordsItsTimeAndNothingWithoutATrace) {
  base::ManualClock clock;
  EngineTrace trace(8);
  {
    TraceScope scope(&trace, clock, TracePhase::kSample, 7);
    scope.set_rows(3);
    clock.Advance(base::Milliseconds(2));
    TraceScope nowhere(nullptr, clock, TracePhase::kPlan, 7);
  }
  ASSERT_EQ(trace.recorded(), 1u);
  const TraceSpan span = trace.Spans()[0];
  EXPECT_EQ(span.step, 7u);
  EXPECT_EQ(span.rows, 3u);
  EXPECT_EQ((span.end - span.begin).ms(), 2);
}

TEST(EngineTrace, HiddenHostShareIsWhatRunsDuringForwards) {
  EXPECT_EQ(HiddenHostShare({}), 0.0);
  EXPECT_EQ(HiddenHostShare({Span(TracePhase::kForward, 0, 10)}), 0.0);
  // Half before the forward, half in it; then one across two forwards and the gap between.
  EXPECT_DOUBLE_EQ(
      HiddenHostShare({Span(TracePhase::kMasks, 5, 15), Span(TracePhase::kForward, 10, 20)}), 0.5);
  EXPECT_DOUBLE_EQ(
      HiddenHostShare({Span(TracePhase::kForward, 10, 20), Span(TracePhase::kPublish, 12, 32),
                       Span(TracePhase::kForward, 22, 40), Span(TracePhase::kSample, 40, 90)}),
      18.0 / 20);
}

TEST(EngineTrace, PhasesHaveNames) {
  for (uint8_t phase = 0; phase <= static_cast<uint8_t>(TracePhase::kPublish); ++phase) {
    EXPECT_FALSE(TracePhaseName(static_cast<TracePhase>(phase)).empty());
  }
  EXPECT_TRUE(IsHostPhase(TracePhase::kPublish));
  EXPECT_FALSE(IsHostPhase(TracePhase::kHandOver));
}

}  // namespace
}  // namespace plumb::engine
