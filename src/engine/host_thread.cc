// engine/host_thread.cc
// The ring and its two waits: the host's for work, the engine's for masks or for room.
#include "engine/host_thread.h"

#include "base/check.h"

namespace plumb::engine {

HostThread::HostThread(HostWork& work, Options options)
    : work_(work),
      options_(std::move(options)),
      between_([this] {
        if (masks_urgent_.load(std::memory_order_relaxed)) ServeMasks();
      }),
      ring_(kHandOversMax) {
  for (HandOver& hand_over : ring_) {
    hand_over.samples.reserve(options_.samples_max);
    hand_over.results.resize(options_.rows_max);
  }
  const size_t words = size_t{options_.rows_max} * options_.words_per_mask;
  mask_words_ = std::make_unique_for_overwrite<uint32_t[]>(words);
  masks_.words = {mask_words_.get(), words};
  masks_.words_per_mask = options_.words_per_mask;
  masks_.items.reserve(options_.rows_max);
}

void HostThread::Start() {
  CHECK(!thread_.joinable());
  if (options_.synchronous) return;
  ready_ = posted_;
  thread_ = base::Thread("engine-host", [this] { Loop(); });
}

void HostThread::Stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  host_wake_.notify_one();
  thread_.Join();
  CHECK(done() == posted_);
}

void HostThread::Post() {
  CHECK(!current().samples.empty());
  CHECK(current().samples.size() <= options_.samples_max) << current().samples.size();
  if (inline_work()) {
    work_.Publish(current(), nullptr);
    done_.store(++posted_, std::memory_order_release);
  } else {
    std::unique_lock lock(mutex_);
    ready_ = ++posted_;
    host_wake_.notify_one();
    engine_wake_.wait(lock, [&] { return posted_ - done() < kHandOversMax; });
  }
  current().samples.clear();
}

void HostThread::PostMasks() {
  if (masks_.items.empty()) return;
  if (inline_work()) {
    work_.FillMasks(masks_);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    masks_pending_ = true;
    masks_urgent_.store(true, std::memory_order_relaxed);
  }
  host_wake_.notify_one();
}

void HostThread::AwaitMasks() {
  if (masks_.items.empty() || inline_work()) return;
  std::unique_lock lock(mutex_);
  engine_wake_.wait(lock, [&] { return !masks_pending_; });
}

void HostThread::ServeMasks() {
  {
    std::lock_guard lock(mutex_);
    if (!masks_pending_) return;
  }
  work_.FillMasks(masks_);
  {
    std::lock_guard lock(mutex_);
    masks_pending_ = false;
    masks_urgent_.store(false, std::memory_order_relaxed);
  }
  engine_wake_.notify_one();
}

bool HostThread::busy() const {
  std::lock_guard lock(mutex_);
  return masks_pending_ || ready_ > done();
}

void HostThread::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    host_wake_.wait(lock, [&] { return stopping_ || masks_pending_ || ready_ > done(); });
    const bool events = ready_ > done(), stopping = stopping_;
    lock.unlock();
    ServeMasks();
    if (events) {
      work_.Publish(ring_[done() % kHandOversMax], between_);
    } else if (stopping) {
      return;
    }
    lock.lock();
    if (!events) continue;
    done_.store(done() + 1, std::memory_order_release);
    engine_wake_.notify_one();
  }
}

}  // namespace plumb::engine
