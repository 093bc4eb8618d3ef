// cli/ticker.h
// Calls a function about once a second, on a thread of its own, until it is destroyed: for what a
// server must do though nobody asks.
#pragma once

#include <functional>

#include "base/mutex.h"
#include "base/thread.h"

namespace plumb::cli {

// A resource type. `tick` must not wait for whoever destroys this.
class Ticker {
 public:
  explicit Ticker(std::function<void()> tick);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void Run();

  const std::function<void()> tick_;
  base::Mutex mutex_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  base::Condition stopped_;
  base::Thread thread_;
};

}  // namespace plumb::cli
