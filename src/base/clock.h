// base/clock.h
// The only source of time. Code that decides by time takes a Clock&, so that the simulator can own
// it; tidy bans other calls of now(). Instant is monotonic; wall time exists for labels alone.
#pragma once

#include <atomic>
#include <cstdint>

namespace plumb::base {

// Nanoseconds; a difference of two Instants.
struct Duration {
  int64_t ns = 0;
  constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }
  constexpr int64_t ms() const { return ns / 1'000'000; }
  friend constexpr auto operator<=>(Duration, Duration) = default;
};
constexpr Duration Milliseconds(int64_t ms) { return {ms * 1'000'000}; }
constexpr Duration Seconds(double s) { return {static_cast<int64_t>(s * 1e9)}; }

// A point on one process's monotonic clock; meaningless in another process.
struct Instant {
  int64_t ns = 0;
  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.ns - b.ns}; }
  friend constexpr Instant operator+(Instant a, Duration d) { return {a.ns + d.ns}; }
};
// Later than every instant that occurs.
constexpr Instant kNever{INT64_MAX};

// Thread: any. Implementations: SystemClock, ManualClock (tests and the simulator).
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
  // Seconds since 1970-01-01 UTC, for `created` fields and file names; never for decisions.
  virtual int64_t UnixSeconds() const = 0;
};

class SystemClock final : public Clock {
 public:
  Instant Now() const override;
  int64_t UnixSeconds() const override;
};

// Stands still until told otherwise.
class ManualClock final : public Clock {
 public:
  Instant Now() const override { return {now_ns_.load(std::memory_order_relaxed)}; }
  int64_t UnixSeconds() const override {
    return now_ns_.load(std::memory_order_relaxed) / 1'000'000'000;
  }
  void Advance(Duration d) { now_ns_.fetch_add(d.ns, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> now_ns_{0};
};

}  // namespace plumb::base
