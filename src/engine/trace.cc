// engine/trace.cc
// The ring, and how much of the host's work is hidden behind the forward.
#include "engine/trace.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::engine {

std::string_view TracePhaseName(TracePhase phase) {
  switch (phase) {
    case TracePhase::kReceive:
      return "receive";
    case TracePhase::kDraft:
      return "draft";
    case TracePhase::kPlan:
      return "plan";
    case TracePhase::kForward:
      return "forward";
    case TracePhase::kMaskWait:
      return "wait for masks";
    case TracePhase::kSample:
      return "sample";
    case TracePhase::kCommit:
      return "commit";
    case TracePhase::kHandOver:
      return "hand over";
    case TracePhase::kMasks:
      return "masks";
    case TracePhase::kPublish:
      return "publish";
  }
  return "";
}

EngineTrace::EngineTrace(size_t spans_max) : spans_max_(spans_max) {
  CHECK(spans_max > 0);
  spans_.reserve(spans_max);
}

void EngineTrace::Record(const TraceSpan& span) {
  base::MutexLock lock(mutex_);
  if (spans_.size() < spans_max_) {
    spans_.push_back(span);
  } else {
    spans_[recorded_ % spans_max_] = span;
  }
  ++recorded_;
}

std::vector<TraceSpan> EngineTrace::Spans() const {
  base::MutexLock lock(mutex_);
  std::vector<TraceSpan> spans = spans_;
  const auto oldest = static_cast<ptrdiff_t>(recorded_ % spans_max_);
  if (spans.size() == spans_max_) {
    std::rotate(spans.begin(), spans.begin() + oldest, spans.end());
  }
  return spans;
}

uint64_t EngineTrace::recorded() const {
  base::MutexLock lock(mutex_);
  return recorded_;
}

double HiddenHostShare(const std::vector<TraceSpan>& spans) {
  std::vector<TraceSpan> forwards;
  for (const TraceSpan& span : spans) {
    if (span.phase == TracePhase::kForward) forwards.push_back(span);
  }
  // One engine: its forwards do not overlap, so both their ends are in order.
  std::sort(forwards.begin(), forwards.end(),
            [](const TraceSpan& a, const TraceSpan& b) { return a.begin < b.begin; });
  int64_t total_ns = 0, hidden_ns = 0;
  for (const TraceSpan& span : spans) {
    if (!IsHostPhase(span.phase)) continue;
    total_ns += (span.end - span.begin).ns;
    auto forward = std::partition_point(forwards.begin(), forwards.end(),
                                        [&](const TraceSpan& f) { return f.end <= span.begin; });
    for (; forward != forwards.end() && forward->begin < span.end; ++forward) {
      hidden_ns += (std::min(forward->end, span.end) - std::max(forward->begin, span.begin)).ns;
    }
  }
  return total_ns > 0 ? static_cast<double>(hidden_ns) / static_cast<double>(total_ns) : 0;
}

}  // namespace plumb::engine
