// engine/weights_swap.h
// Other weights that wait to be put in the place of an engine's: what the caller of SwapModel and
// the engine's thread tell each other. Read next: engine/engine_swap.cc.
#pragma once

#include <atomic>
#include <string>

#include "base/mutex.h"
#include "model/model.h"

namespace plumb::engine {

struct WeightsSwap {
  base::Mutex mutex;
  base::Condition changed;
  model::Model* model GUARDED_BY(mutex) = nullptr;  // null: none is wanted (any more)
  std::string content GUARDED_BY(mutex);
  bool in_progress GUARDED_BY(mutex) = false;

  std::atomic<bool> pending{false};  // a hint for the loop, without the lock
};

}  // namespace plumb::engine
