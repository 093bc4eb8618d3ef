// engine/trace.h
// When the phases of steps began and ended, on the engine's thread and on the host's: shows what
// runs beside what. A ring of the latest spans; whoever wants a file of it writes one (cli/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace plumb::engine {

enum class TracePhase : uint8_t {
  // The engine's thread, in order.
  kReceive,
  kDraft,
  kPlan,
  kForward,
  kMaskWait,  // for masks that were not ready when the forward was
  kSample,    // and verification of drafts, on the compute pool
  kCommit,
  kHandOver,  // waits when the host is behind
  // The host's.
  kMasks,
  kPublish,
};

// "forward", "publish", ...
std::string_view TracePhaseName(TracePhase phase);
constexpr bool IsHostPhase(TracePhase phase) { return phase >= TracePhase::kMasks; }

struct TraceSpan {
  TracePhase phase;
  uint64_t step = 0;  // kPublish: the step that sampled what is published
  base::Instant begin{}, end{};
  uint32_t rows = 0;  // kForward: rows; kSample: rows with logits; kMasks: masks; kPublish: samples
};

// Thread: any.
class EngineTrace {
 public:
  // The latest `spans_max` spans are kept; > 0 (CHECK).
  explicit EngineTrace(size_t spans_max);

  void Record(const TraceSpan& span);
  // What is kept, in the order of recording.
  std::vector<TraceSpan> Spans() const;
  uint64_t recorded() const;

 private:
  const size_t spans_max_;
  mutable base::Mutex mutex_;
  std::vector<TraceSpan> spans_ GUARDED_BY(mutex_);  // a ring once full
  uint64_t recorded_ GUARDED_BY(mutex_) = 0;
};

// Of the time that host phases took, the share during which a forward ran; 0 without host phases.
double HiddenHostShare(const std::vector<TraceSpan>& spans);

// Records the time from construction to destruction. With a null trace it does nothing, and reads
// no clock.
class TraceScope {
 public:
  TraceScope(EngineTrace* trace, const base::Clock& clock, TracePhase phase, uint64_t step)
      : trace_(trace), clock_(clock), span_{.phase = phase, .step = step} {
    if (trace_ != nullptr) span_.begin = clock_.Now();
  }
  ~TraceScope() {
    if (trace_ == nullptr) return;
    span_.end = clock_.Now();
    trace_->Record(span_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  void set_rows(size_t rows) { span_.rows = static_cast<uint32_t>(rows); }

 private:
  EngineTrace* const trace_;
  const base::Clock& clock_;
  TraceSpan span_;
};

}  // namespace plumb::engine
