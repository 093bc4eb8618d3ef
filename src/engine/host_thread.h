// engine/host_thread.h
// When the host's work runs: on a thread of its own beside the forward, masks before events; or, in
// the synchronous mode and while no thread was started, at once on the engine's thread. Hand-overs
// go through a ring of fixed size: an engine that is too far ahead waits, so nothing grows. Whether
// both threads go on is looked at by a third: engine/stall_watch.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "engine/hand_over.h"
#include "engine/host_work.h"

namespace plumb::engine {

// Hand-overs that may be on their way, the one that the engine fills included.
constexpr uint32_t kHandOversMax = 4;

// Samples of a hand-over: all that wait, those that run, and those that lost their seats to each
// higher priority, in units of the seats.
constexpr uint32_t kSeatsHeldMax = 4;

// Thread: Start and Stop: the owner; everything else the engine's.
class HostThread {
 public:
  struct Options {
    uint32_t samples_max = 0;  // of a hand-over
    uint32_t rows_max = 0;     // with logits, of a step
    uint32_t words_per_mask = 0;
    bool synchronous = false;  // there is no thread
  };
  // `work` must outlive this.
  HostThread(HostWork& work, Options options);
  ~HostThread() { Stop(); }
  HostThread(const HostThread&) = delete;
  HostThread& operator=(const HostThread&) = delete;

  void Start();
  // Whether its thread has work. Thread: any.
  bool busy() const;
  // Once the engine's thread is gone: finishes what was posted, then joins.
  void Stop();

  // To be filled; empty after each Post.
  HandOver& current() { return ring_[posted_ % kHandOversMax]; }
  // Hands `current` over. Waits while the ring is full.
  void Post();

  // To be filled before PostMasks.
  MaskWork& masks() { return masks_; }
  // From here to AwaitMasks, masks and grammar states of its samples are the host's.
  void PostMasks();
  void AwaitMasks();

  // Hand-overs posted, and those of them that are done with: the first so many.
  uint64_t posted() const { return posted_; }
  uint64_t done() const { return done_.load(std::memory_order_acquire); }

 private:
  bool inline_work() const { return !thread_.joinable(); }
  void Loop();
  void ServeMasks();  // if there are any

  HostWork& work_;
  const Options options_;
  const std::function<void()> between_;  // events: masks may have become urgent
  std::vector<HandOver> ring_;           // [kHandOversMax]
  MaskWork masks_;
  std::unique_ptr<uint32_t[]> mask_words_;  // [rows_max, words_per_mask], not touched before use
  uint64_t posted_ = 0;                     // the engine's; the thread looks at ready_

  mutable base::Mutex mutex_;
  base::Condition host_wake_, engine_wake_;
  uint64_t ready_ GUARDED_BY(mutex_) = 0;  // posted_, where the thread publishes
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool masks_pending_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> masks_urgent_{false};  // a hint of masks_pending_, without the lock
  std::atomic<uint64_t> done_{0};          // raised under mutex_
  base::Thread thread_;
};

}  // namespace plumb::engine
