// engine/weights_swap.h
// Other weights that wait to be put in the place of an engine's: what the caller of SwapModel and
// the engine's thread tell each other. Read next: engine/engine_swap.cc.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "model/model.h"

namespace plumb::engine {

struct WeightsSwap {
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  model::Model* model = nullptr;  // null: none is wanted (any more)
  std::string content;
  bool in_progress = false;

  std::atomic<bool> pending{false};  // a hint for the loop, without the lock
};

}  // namespace plumb::engine
