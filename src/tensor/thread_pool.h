// tensor/thread_pool.h
// Fork-join inside one tensor operation. Items are claimed one by one from a counter, the caller
// works too, and a join waits only for workers that took part: one that sleeps, or was descheduled
// before it claimed anything, is never waited for. Who computes an item never changes its result.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/thread.h"

namespace plumb::tensor {

constexpr uint32_t kThreadsMax = 512;

struct ThreadPoolOptions {
  uint32_t threads = 1;  // the caller's included; clamped to [1, kThreadsMax]
  // Worker i runs on the i-th processor of the constructing thread's affinity only; 0 is the
  // caller's, while it has a CallerPin (caller_pin.h).
  bool pin = false;
  // How long an idle worker spins before it sleeps in the kernel. One pause is about 15-50 ns.
  uint32_t spin_pauses = 4000;
};

// A resource type. Thread: ParallelFor from one thread at a time (the engine's), never from an
// item.
class ThreadPool {
 public:
  explicit ThreadPool(const ThreadPoolOptions& options);
  ~ThreadPool();  // joins the workers
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  bool pins() const { return options_.pin; }
  // The caller's included.
  uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }

  // Calls fn(item) once for every item in [0, items), on any thread in any order, and returns when
  // all are done; what they wrote is then visible. No allocation; fn must not throw.
  template <typename F>
  void ParallelFor(uint32_t items, const F& fn) {
    static_assert(std::is_invocable_v<const F&, uint32_t>);
    Run(items, &fn, [](const void* f, uint32_t item) { (*static_cast<const F*>(f))(item); });
  }

 private:
  using Call = void (*)(const void* fn, uint32_t item);

  void Run(uint32_t items, const void* fn, Call call);
  void WorkerLoop(uint32_t index);
  void ClaimItems();
  // Waits until a round other than `seen` has begun; returns its number.
  uint32_t AwaitRound(uint32_t seen);

  const ThreadPoolOptions options_;

  // The current round's work; written by the caller while no worker is inside.
  const void* fn_ = nullptr;
  Call call_ = nullptr;
  uint32_t items_ = 0;

  alignas(64) std::atomic<uint32_t> next_item_{0};
  // kOpen bit: workers may enter; low bits: workers inside.
  alignas(64) std::atomic<uint32_t> gate_{0};
  // Counts rounds; workers sleep on it.
  alignas(64) std::atomic<uint32_t> round_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> running_{false};  // guards against nesting
  std::vector<base::Thread> workers_;
};

}  // namespace plumb::tensor
