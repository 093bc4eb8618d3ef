// engine/stall_watch.cc
// A look each quarter of the limit, behind engine/stall_watch.h.
#include "engine/stall_watch.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::engine {
namespace {

// In real time, since it is about threads that hang.
constexpr int64_t kPeriodMinNs = 10'000'000, kPeriodMaxNs = 1'000'000'000;

}  // namespace

void StallWatch::Start() {
  CHECK(!thread_.joinable());
  if (options_.limit.ns > 0) thread_ = base::Thread("engine-watch", [this] { Loop(); });
}

void StallWatch::Stop() {
  if (!thread_.joinable()) return;
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyOne();
  thread_.Join();
}

void StallWatch::Loop() {
  const base::Duration period{std::clamp(options_.limit.ns / 4, kPeriodMinNs, kPeriodMaxNs)};
  while (!StopsWithin(period)) Look();
}

bool StallWatch::StopsWithin(base::Duration time) {
  base::MutexLock lock(mutex_);
  return stop_.WaitFor(lock, time, [this]() HOLDS(mutex_) { return stopping_; });
}

void StallWatch::Look() {
  // Both, each time.
  const bool engine = options_.engine_hangs(), host = HostHangs();
  host_hangs_.store(host, std::memory_order_relaxed);
  if (!engine && !host) {
    failed_all_ = false;
  } else if (!failed_all_) {
    failed_all_ = options_.fail_all();
  }
}

bool StallWatch::HostHangs() {
  const base::Instant now = options_.clock.Now();
  if (!options_.host_busy()) {
    host_looks_.Rests();
    return false;
  }
  const bool stands_still = host_looks_.StandsStill(options_.host_progress());
  if (host_looks_.alike() == 0) host_since_ = now;
  return stands_still && now - host_since_ > options_.limit;
}

}  // namespace plumb::engine
