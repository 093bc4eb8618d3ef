// base/clock.cc: the operating system's clocks, wrapped once.
// The home of now(); everybody else takes a Clock.
#include "base/clock.h"

#include <chrono>

namespace plumb::base {

Instant SystemClock::Now() const {
  auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count()};
}

int64_t SystemClock::UnixSeconds() const {
  auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count();
}

}  // namespace plumb::base
