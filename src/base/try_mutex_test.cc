// base/try_mutex_test.cc
// A try gives up where another thread has the mutex, and what it locks is released. What the
// analysis refuses is seen by the lint preset.
#include "base/try_mutex.h"

#include <gtest/gtest.h>

#include "base/thread.h"

namespace plumb::base {
namespace {

// Whether `try_lock` locks on another thread (a thread may not try for what it has itself); what
// it locked is released again.
template <typename TryToLock>
bool LocksElsewhere(TryMutex& mutex, const TryToLock& try_lock) {
  bool locked = false;
  Thread thread("elsewhere", [&] {
    if (!try_lock(mutex)) return;
    TryMutexLock lock(mutex, kLocked);
    locked = true;
  });
  thread.Join();
  return locked;
}

bool CanLock(TryMutex& mutex) {
  return LocksElsewhere(mutex, [](TryMutex& tried) { return tried.TryLock(); });
}

bool CanLockSoon(TryMutex& mutex) {
  return LocksElsewhere(mutex, [](TryMutex& tried) { return tried.TryLockFor(Milliseconds(1)); });
}

TEST(TryMutex, ATryGivesUpWhereAnotherThreadHasIt) {
  TryMutex mutex;
  TryMutexLock lock(mutex);
  EXPECT_FALSE(CanLock(mutex));
  EXPECT_FALSE(CanLockSoon(mutex));
}

TEST(TryMutex, ALockReleasesItHoweverItCameByIt) {
  TryMutex mutex;
  {
    TryMutexLock lock(mutex);
  }
  EXPECT_TRUE(CanLock(mutex));
  EXPECT_TRUE(CanLockSoon(mutex));
  EXPECT_TRUE(CanLock(mutex));
}

}  // namespace
}  // namespace plumb::base
