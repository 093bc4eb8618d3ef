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
  {
    base::MutexLock lock(mutex_);
    ready_ = posted_;
  }
  thread_ = base::Thread("engine-host", [this] { Loop(); });
}

void HostThread::Stop() {
  if (!thread_.joinable()) return;
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  host_wake_.NotifyOne();
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
    base::MutexLock lock(mutex_);
    ready_ = ++posted_;
    host_wake_.NotifyOne();
    engine_wake_.Wait(lock, [&] { return posted_ - done() < kHandOversMax; });
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
    base::MutexLock lock(mutex_);
    masks_pending_ = true;
    masks_urgent_.store(true, std::memory_order_relaxed);
  }
  host_wake_.NotifyOne();
}

void HostThread::AwaitMasks() {
  if (masks_.items.empty() || inline_work()) return;
  base::MutexLock lock(mutex_);
  engine_wake_.Wait(lock, [&]() HOLDS(mutex_) { return !masks_pending_; });
}

void HostThread::ServeMasks() {
  {
    base::MutexLock lock(mutex_);
    if (!masks_pending_) return;
  }
  work_.FillMasks(masks_);
  {
    base::MutexLock lock(mutex_);
    masks_pending_ = false;
    masks_urgent_.store(false, std::memory_order_relaxed);
  }
  engine_wake_.NotifyOne();
}

bool HostThread::busy() const {
  base::MutexLock lock(mutex_);
  return masks_pending_ || ready_ > done();
}

void HostThread::Loop() {
  for (;;) {
    bool events = false, stopping = false;
    {
      base::MutexLock lock(mutex_);
      host_wake_.Wait(
          lock, [&]() HOLDS(mutex_) { return stopping_ || masks_pending_ || ready_ > done(); });
      events = ready_ > done();
      stopping = stopping_;
    }
    ServeMasks();
    if (events) {
      work_.Publish(ring_[done() % kHandOversMax], between_);
      base::MutexLock lock(mutex_);
      done_.store(done() + 1, std::memory_order_release);
      engine_wake_.NotifyOne();
    } else if (stopping) {
      return;
    }
  }
}

}  // namespace plumb::engine
