// cli/ticker.cc
// See ticker.h.
#include "cli/ticker.h"

#include <utility>

namespace plumb::cli {

namespace {
constexpr base::Duration kPeriod = base::Seconds(1);
}  // namespace

Ticker::Ticker(std::function<void()> tick) : tick_(std::move(tick)) {
  thread_ = base::Thread("ticker", [this] { Run(); });
}

Ticker::~Ticker() {
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopped_.NotifyAll();
  thread_.Join();
}

void Ticker::Run() {
  base::MutexLock lock(mutex_);
  while (!stopped_.WaitFor(lock, kPeriod, [this]() HOLDS(mutex_) { return stopping_; })) tick_();
}

}  // namespace plumb::cli
