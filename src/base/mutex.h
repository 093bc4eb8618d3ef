// base/mutex.h
// A mutex that Clang's thread-safety analysis knows (scripts/lint.sh): a member that is
// GUARDED_BY(mutex_) and touched without the lock is a compile error there, and costs nothing
// elsewhere. Source: Clang's document "Thread Safety Analysis".
// In use: src/base, src/net, text/token_cache. std::mutex elsewhere says in comments what it
// guards.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"

#if defined(__clang__)
#define PLUMB_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define PLUMB_THREAD_SAFETY(attribute)
#endif
// Of a member: read and written under `mutex` only.
#define GUARDED_BY(mutex) PLUMB_THREAD_SAFETY(guarded_by(mutex))
// Of a function or lambda: the caller holds `mutex`.
#define HOLDS(mutex) PLUMB_THREAD_SAFETY(requires_capability(mutex))

namespace plumb::base {

class PLUMB_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds the mutex as long as it lives.
class PLUMB_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) PLUMB_THREAD_SAFETY(acquire_capability(mutex))
      PLUMB_THREAD_SAFETY(no_thread_safety_analysis)
      : lock_(mutex.mutex_) {}
  ~MutexLock() PLUMB_THREAD_SAFETY(release_capability())
      PLUMB_THREAD_SAFETY(no_thread_safety_analysis) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

// What threads wait for while they give up the lock. `ready` is called under it:
// `[&]() HOLDS(mutex_) { return closed_; }`.
class Condition {
 public:
  template <typename Ready>
  void Wait(MutexLock& lock, const Ready& ready) {
    changed_.wait(lock.lock_, ready);
  }
  // What `ready` says at the end: false when the time was up.
  template <typename Ready>
  bool WaitFor(MutexLock& lock, Duration time, const Ready& ready) {
    return changed_.wait_for(lock.lock_, std::chrono::nanoseconds(time.ns), ready);
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace plumb::base
