// tensor/thread_pool.cc: the gate. A round opens it, workers enter and leave by counting, and the
// caller closes it when no item is left, then waits for those inside.
#include "tensor/thread_pool.h"

#include <algorithm>
#include <thread>

#include "base/affinity.h"
#include "base/check.h"

namespace plumb::tensor {
namespace {

constexpr uint32_t kOpen = 1u << 31;
constexpr uint32_t kItemsMax = 1u << 31;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Restricts the calling thread to the index-th processor it may use; no harm done if refused.
void PinToProcessor(uint32_t index) {
  const std::vector<uint32_t> allowed = base::AllowedProcessors();
  if (allowed.empty()) return;
  const uint32_t processor[] = {allowed[index % allowed.size()]};
  base::RestrictToProcessors(processor);
}

}  // namespace

ThreadPool::ThreadPool(const ThreadPoolOptions& options) : options_(options) {
  const uint32_t threads = std::clamp(options.threads, 1u, kThreadsMax);
  workers_.reserve(threads - 1);
  for (uint32_t i = 1; i < threads; ++i) {
    workers_.emplace_back("compute" + std::to_string(i), [this, i] { WorkerLoop(i); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (base::Thread& worker : workers_) worker.Join();
}

void ThreadPool::Run(uint32_t items, const void* fn, Call call) {
  CHECK(!running_.exchange(true, std::memory_order_relaxed)) << "ParallelFor inside ParallelFor";
  CHECK(items <= kItemsMax) << items;  // the claim counter may run past it by a step per thread
  fn_ = fn;
  call_ = call;
  items_ = items;
  next_item_.store(0, std::memory_order_relaxed);
  if (items > 1 && !workers_.empty()) {
    gate_.store(kOpen, std::memory_order_release);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    ClaimItems();
    gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
    for (uint32_t waited = 0; gate_.load(std::memory_order_acquire) != 0; ++waited) {
      Pause();
      // The last worker may have lost its processor to us.
      if (waited > options_.spin_pauses) std::this_thread::yield();
    }
  } else {
    ClaimItems();
  }
  running_.store(false, std::memory_order_relaxed);
}

void ThreadPool::ClaimItems() {
  for (;;) {
    const uint32_t item = next_item_.fetch_add(1, std::memory_order_relaxed);
    if (item >= items_) return;
    call_(fn_, item);
  }
}

uint32_t ThreadPool::AwaitRound(uint32_t seen) {
  for (uint32_t i = 0; i < options_.spin_pauses; ++i) {
    const uint32_t round = round_.load(std::memory_order_acquire);
    if (round != seen) return round;
    Pause();
  }
  round_.wait(seen, std::memory_order_acquire);
  return round_.load(std::memory_order_acquire);
}

void ThreadPool::WorkerLoop(uint32_t index) {
  if (options_.pin) PinToProcessor(index);
  uint32_t seen = 0;
  for (;;) {
    seen = AwaitRound(seen);
    if (stopping_.load(std::memory_order_relaxed)) return;
    uint32_t gate = gate_.load(std::memory_order_relaxed);
    while ((gate & kOpen) != 0) {
      if (!gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire)) continue;
      ClaimItems();
      gate_.fetch_sub(1, std::memory_order_release);
      break;
    }
  }
}

}  // namespace plumb::tensor
