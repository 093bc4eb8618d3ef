// engine/stretch.cc: two quantiles, each followed by a walk of small steps up and large steps down
// (or the reverse), which stands still where one step in fifty is beyond.
#include "engine/stretch.h"

#include <algorithm>

namespace plumb::engine {
namespace {

// Steps that may be beyond, one in so many.
constexpr double kOneIn = 50;
// What each ordinary step moves the walk by.
constexpr double kWalk = 0.002;
// Below the promised 2, since the walk needs steps beyond to stand still.
constexpr double kTolerated = 1.9;

}  // namespace

void Stretch::Observe(base::Duration alone, base::Duration elapsed, bool mixed) {
  if (alone.ns <= 0 || elapsed.ns <= 0) return;
  const double ratio = static_cast<double>(elapsed.ns) / static_cast<double>(alone.ns);
  if (mixed) {
    const bool beyond = ratio > kTolerated * scatter_;
    factor_ += beyond ? -kWalk * (kOneIn - 1) : kWalk;
    factor_ = std::clamp(factor_, kFactorMin, kFactorMax);
  } else {
    const bool beyond = ratio > scatter_;
    scatter_ += beyond ? kWalk * (kOneIn - 1) : -kWalk;
    scatter_ = std::clamp(scatter_, 1.0, kScatterMax);
  }
}

}  // namespace plumb::engine
