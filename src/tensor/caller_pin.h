// tensor/caller_pin.h
// The thread that calls ParallelFor computes as much as a worker does, so that with a pool that
// pins it is bound like one: to the processor that no worker has. Read first: thread_pool.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/affinity.h"
#include "tensor/thread_pool.h"

namespace plumb::tensor {

// While it lives, the calling thread is the pool's thread 0 and runs on the first of its processors
// only; afterwards where it might before. Made and destroyed on that thread. Without a pool, or
// with one that does not pin, it does nothing.
class CallerPin {
 public:
  explicit CallerPin(const ThreadPool* pool) {
    if (pool == nullptr || !pool->pins()) return;
    before_ = base::AllowedProcessors();
    if (!before_.empty()) base::RestrictToProcessors(std::span(before_).first(1));
  }
  ~CallerPin() { base::RestrictToProcessors(before_); }
  CallerPin(const CallerPin&) = delete;
  CallerPin& operator=(const CallerPin&) = delete;

 private:
  std::vector<uint32_t> before_;  // empty = nothing to restore
};

}  // namespace plumb::tensor
