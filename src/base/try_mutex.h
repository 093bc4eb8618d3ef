// base/try_mutex.h
// A mutex for whoever must not wait for it, or not for ever: a try that finds it taken gives up.
// Clang's analysis knows it like that of base/mutex.h, which is the usual one; no Condition goes
// with this one.
#pragma once

#include <chrono>
#include <mutex>

#include "base/clock.h"
#include "base/mutex.h"

namespace plumb::base {

class PLUMB_THREAD_SAFETY(capability("mutex")) TryMutex {
 public:
  TryMutex() = default;
  TryMutex(const TryMutex&) = delete;
  TryMutex& operator=(const TryMutex&) = delete;

  // True: it is locked, to be taken over at once: `TryMutexLock lock(mutex_, kLocked)`. False:
  // another thread has it, or had it for all of `time`, which is real time.
  bool TryLock() PLUMB_THREAD_SAFETY(try_acquire_capability(true))
      PLUMB_THREAD_SAFETY(no_thread_safety_analysis) {
    return mutex_.try_lock();
  }
  bool TryLockFor(Duration time) PLUMB_THREAD_SAFETY(try_acquire_capability(true))
      PLUMB_THREAD_SAFETY(no_thread_safety_analysis) {
#if defined(__SANITIZE_THREAD__)
    // GCC 12's ThreadSanitizer does not know pthread_mutex_clocklock, which the other form calls.
    const SystemClock clock;
    const Instant end = clock.Now() + time;
    while (!mutex_.try_lock()) {
      if (clock.Now() >= end) return false;
    }
    return true;
#else
    return mutex_.try_lock_for(std::chrono::nanoseconds(time.ns));
#endif
  }

 private:
  friend class TryMutexLock;
  std::timed_mutex mutex_;
};

struct LockedTag {};
constexpr LockedTag kLocked;

// Holds the mutex as long as it lives.
class PLUMB_THREAD_SAFETY(scoped_lockable) TryMutexLock {
 public:
  // Waits for it.
  explicit TryMutexLock(TryMutex& mutex) PLUMB_THREAD_SAFETY(acquire_capability(mutex))
      PLUMB_THREAD_SAFETY(no_thread_safety_analysis)
      : lock_(mutex.mutex_) {}
  // Takes over what a try has locked.
  TryMutexLock(TryMutex& mutex, LockedTag /*locked*/)
      PLUMB_THREAD_SAFETY(requires_capability(mutex)) PLUMB_THREAD_SAFETY(no_thread_safety_analysis)
      : lock_(mutex.mutex_, std::adopt_lock) {}
  ~TryMutexLock() PLUMB_THREAD_SAFETY(release_capability())
      PLUMB_THREAD_SAFETY(no_thread_safety_analysis) {}
  TryMutexLock(const TryMutexLock&) = delete;
  TryMutexLock& operator=(const TryMutexLock&) = delete;

 private:
  std::unique_lock<std::timed_mutex> lock_;
};

}  // namespace plumb::base
