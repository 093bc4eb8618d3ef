// engine/host_work.h
// What is done with what the engine hands over: grammars fill masks, tokens become text and events,
// sinks are called. Every event of every request goes through one gate here, so that an answer ends
// exactly once whoever ends it: the engine, a stop string, or the watchdog when the engine hangs.
// Which thread comes here, and when: engine/host_thread.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/try_mutex.h"
#include "engine/hand_over.h"
#include "engine/live_request.h"
#include "engine/stats.h"
#include "engine/trace.h"
#include "telemetry/metrics.h"

namespace plumb::engine {

// Thread: any; the gate lets one in at a time.
class HostWork {
 public:
  struct Surroundings {
    const base::Clock& clock;
    EngineCounters& counters;
    telemetry::EngineMetrics* metrics = nullptr;  // null: nowhere
    EngineTrace* trace = nullptr;                 // null: nowhere
    // The request's last event is about to go out: its id is free. Called inside the gate.
    std::function<void(const LiveRequest&)> forget;
    // A sample ended that the engine has not ended (ended_by_host is set). Called inside the gate.
    std::function<void()> tell_engine;
  };
  explicit HostWork(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}

  // Fills the masks of each item, or its status. The grammar states are as before on return. Needs
  // no gate; the caller sees to it that the engine leaves the states alone meanwhile.
  void FillMasks(MaskWork& work);

  // Sends the events of a hand-over; between two of them, outside the gate, `between` is called if
  // there is one. Samples that have ended already are passed over.
  void Publish(const HandOver& hand_over, const std::function<void()>& between);

  // Ends with `status` whatever of the requests `list` names has not ended. It is asked inside the
  // gate, so that none of them can end meanwhile. False: somebody is in the gate and does not leave
  // it (a sink that hangs); nothing was done.
  bool FailAll(const std::function<std::vector<LiveRequest*>()>& list, const base::Status& status);

  // Grows with each mask item and each event that is done with.
  int64_t progress() const { return progress_.load(std::memory_order_relaxed); }

 private:
  void FillMasksOf(MaskItem& item, const MaskWork& work) const;
  void Progress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  void PublishOne(const HandedSample& handed, std::span<const SampleResult> results,
                  base::Instant now) HOLDS(gate_);
  void ObserveLatency(Sample& sample, base::Instant now, bool first) HOLDS(gate_);
  void Finish(Sample& sample, TokenEvent event) HOLDS(gate_);
  void CountFinish(FinishReason reason);

  const Surroundings surroundings_;
  base::TryMutex gate_;
  std::atomic<int64_t> progress_{0};
};

}  // namespace plumb::engine
