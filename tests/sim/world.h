// tests/sim/world.h
// Simulated time: a heap of events in the order of their time, then of their making, and the clock
// that the production code reads. One thread, no real time; the same calls give the same run.
// Read next: tests/sim/engine_sim.h.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/clock.h"

namespace plumb::sim {

// Stands still but for World. Thread: one.
class SimClock final : public base::Clock {
 public:
  base::Instant Now() const override { return now_; }
  int64_t UnixSeconds() const override { return now_.ns / 1'000'000'000; }

 private:
  friend class World;
  base::Instant now_{};
};

// Thread: one.
class World {
 public:
  using Event = std::function<void()>;

  const SimClock& clock() const { return clock_; }
  base::Instant now() const { return clock_.now_; }

  // `event` happens at `when`, or at once when that has passed; after all others of that time. At
  // most kEventsMax wait (CHECK).
  void At(base::Instant when, Event event);
  void After(base::Duration delay, Event event) { At(now() + delay, std::move(event)); }

  // Everything that is due until `when`, where the clock then stands. Events may make events.
  void RunUntil(base::Instant when);
  // The next event, with the clock at its time; false when there is none.
  bool RunNext();

  static constexpr size_t kEventsMax = 1u << 20;

 private:
  struct Entry {
    base::Instant when;
    uint64_t sequence;
    Event event;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
    }
  };

  SimClock clock_;
  std::priority_queue<Entry, std::vector<Entry>, Later> heap_;
  uint64_t next_sequence_ = 0;
};

}  // namespace plumb::sim
