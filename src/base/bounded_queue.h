// base/bounded_queue.h
// How threads speak: a queue of values with a maximum. Push never blocks (a full queue is the
// producer's circumstance: it refuses or retries by its own policy); Pop may wait. After Close,
// pushes are refused and pops drain what is left.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace plumb::base {

// Thread: any number of producers and consumers.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t size_max) : size_max_(size_max) {}

  // False when full or closed; the value is then still the caller's.
  bool Push(T&& value) {
    {
      MutexLock lock(mutex_);
      if (closed_ || items_.size() >= size_max_) return false;
      items_.push_back(std::move(value));
    }
    ready_.NotifyOne();
    return true;
  }

  // Waits for a value; nothing once closed and empty.
  std::optional<T> Pop() {
    MutexLock lock(mutex_);
    ready_.Wait(lock, [&]() HOLDS(mutex_) { return closed_ || !items_.empty(); });
    return TakeFront();
  }

  // Never waits.
  std::optional<T> TryPop() {
    MutexLock lock(mutex_);
    return TakeFront();
  }

  void Close() {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    ready_.NotifyAll();
  }

  bool closed() const {
    MutexLock lock(mutex_);
    return closed_;
  }
  size_t size() const {
    MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  std::optional<T> TakeFront() HOLDS(mutex_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> value(std::move(items_.front()));
    items_.pop_front();
    return value;
  }

  const size_t size_max_;
  mutable Mutex mutex_;
  Condition ready_;
  std::deque<T> items_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace plumb::base
