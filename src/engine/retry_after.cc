// engine/retry_after.cc
// A rate from sums that fade, and a count of promises; why: engine/retry_after.h.
#include "engine/retry_after.h"

#include <algorithm>
#include <cmath>

namespace plumb::engine {
namespace {

constexpr double kFadeNs = 30e9;
// While nothing is measured yet every answer is the shortest time.
constexpr uint32_t kPromisedMax = 1u << 12;

}  // namespace

void RetryAfter::Observe(uint64_t started, base::Duration elapsed) {
  const double ns = static_cast<double>(std::max<int64_t>(elapsed.ns, 0));
  const uint64_t more = started - started_;
  started_ = started;
  const double kept = std::exp(-ns / kFadeNs);
  starts_ = starts_ * kept + static_cast<double>(more);
  elapsed_ns_ = elapsed_ns_ * kept + ns;
  // One more is due: so a long time without any is an interval too, and nothing divides by 0.
  interval_ns_.store(elapsed_ns_ / (starts_ + 1), std::memory_order_relaxed);
  if (more == 0) return;
  uint32_t promised = promised_.load(std::memory_order_relaxed);
  while (!promised_.compare_exchange_weak(
      promised, static_cast<uint32_t>(promised - std::min<uint64_t>(promised, more)),
      std::memory_order_relaxed)) {
  }
}

uint32_t RetryAfter::Refuse() {
  const uint32_t promised = promised_.load(std::memory_order_relaxed);
  const uint32_t ms =
      Estimate(interval_ns_.load(std::memory_order_relaxed), uint64_t{promised} + 1);
  // Beyond the longest time nothing is promised: a flood of callers is forgotten as soon.
  if (ms < kMostMs && promised < kPromisedMax) promised_.fetch_add(1, std::memory_order_relaxed);
  return ms;
}

uint32_t RetryAfter::Estimate(double interval_ns, uint64_t ahead) {
  const double ms = interval_ns * static_cast<double>(ahead) * 1e-6;
  return static_cast<uint32_t>(
      std::clamp(ms, static_cast<double>(kLeastMs), static_cast<double>(kMostMs)));
}

}  // namespace plumb::engine
