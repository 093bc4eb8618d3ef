// engine/stretch.h
// How many times as long as decoding alone a step with prompt rows may be planned, when no target
// was given. Times scatter, and differently on every machine, so the factor is learned: it is the
// largest with which at most one such step in fifty takes twice as long as steps without prompts
// take at their slowest fiftieth. docs/scheduling.md. No clock. Thread: engine thread only.
#pragma once

#include "base/clock.h"

namespace plumb::engine {

class Stretch {
 public:
  // A step took `elapsed`; its decode rows alone were predicted to take `alone`. `mixed`: it held
  // prompt rows, as many as factor() allowed. Nothing is learned when a time is 0.
  void Observe(base::Duration alone, base::Duration elapsed, bool mixed);

  // In [kFactorMin, kFactorMax].
  double factor() const { return factor_; }
  // What the slowest fiftieth of steps without prompts takes, in predicted times; >= 1.
  double scatter() const { return scatter_; }

  static constexpr double kFactorMin = 1.2;  // or prompts would hardly go on
  static constexpr double kFactorMax = 1.8;
  static constexpr double kScatterMax = 1.5;

 private:
  double factor_ = 1.5;
  double scatter_ = 1;
};

}  // namespace plumb::engine
