// engine/stall_watch.h
// The watchdog: whether the engine's thread and the host's go on, looked at from a third one, since
// each of them may hang; and what is live fails when one of them does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace plumb::engine {

// Of one thread that is looked at: how far it is, look by look. A process that was stopped as a
// whole (SIGSTOP, a paused machine) finds the clock far ahead when it goes on, with nothing wrong:
// so time alone does not count, but looks that find the same. A value type.
class StallLooks {
 public:
  // A look at a thread that has work. True when several have found it where it is now.
  bool StandsStill(int64_t progress) {
    alike_ = progress == seen_ ? alike_ + 1 : 0;
    seen_ = progress;
    return alike_ >= kAlike;
  }
  // It has no work.
  void Rests() { alike_ = 0; }
  uint32_t alike() const { return alike_; }

 private:
  static constexpr uint32_t kAlike = 3;
  int64_t seen_ = INT64_MIN;
  uint32_t alike_ = 0;
};

// A resource type. Thread: Start and Stop: the owner; host_hangs: any.
class StallWatch {
 public:
  struct Options {
    const base::Clock& clock;
    base::Duration limit{};  // that the host may take for one thing; 0 = nothing is looked at
    // Called on the watch's thread, which must not block.
    std::function<bool()> engine_hangs;  // looks, too
    std::function<bool()> host_busy;
    std::function<int64_t()> host_progress;  // grows as it goes on
    // Something hangs: called until it returns true, then not before both went on.
    std::function<bool()> fail_all;
  };
  explicit StallWatch(Options options) : options_(std::move(options)) {}
  ~StallWatch() { Stop(); }
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  void Start();
  // No look begins after it has returned. Nothing when it was not started.
  void Stop();

  bool host_hangs() const { return host_hangs_.load(std::memory_order_relaxed); }

 private:
  void Loop();
  bool StopsWithin(base::Duration time);
  void Look();
  bool HostHangs();

  const Options options_;
  // Thread: the watch's.
  StallLooks host_looks_;
  base::Instant host_since_{};  // when the host was first found where it is
  bool failed_all_ = false;

  std::atomic<bool> host_hangs_{false};
  base::Mutex mutex_;
  base::Condition stop_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  base::Thread thread_;
};

}  // namespace plumb::engine
