// engine/step_cost.h
// How long a step takes, learned from those that were measured: a table of mean times by shape, and
// a curve through it. The curve is a sum of what the first row costs, each further one (by
// octaves), each row with logits, and each key that a row looks at; no coefficient is negative, so
// that more of anything never costs less. No clock: a function of what was observed. Why not a
// line, why means and not single steps: docs/scheduling.md. Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace plumb::engine {

struct StepShape {
  uint32_t rows = 0;
  uint32_t logits_rows = 0;  // of them
  uint64_t keys = 0;         // summed over rows: a row at position p looks at p + 1

  friend bool operator==(const StepShape&, const StepShape&) = default;
};

// Keys of rows [position, position + rows) of a sequence.
constexpr uint64_t KeysOf(uint64_t position, uint64_t rows) {
  return rows * position + rows * (rows + 1) / 2;
}

class StepCost {
 public:
  StepCost() = default;

  // A step of this shape took `elapsed`. Nothing is learned when either is zero.
  // One odd step moves little: it counts as a quarter off at most. A few in a row that
  // are all slower (faster) than expected mean that the machine is: all that is known is scaled.
  void Observe(const StepShape& shape, base::Duration elapsed);

  // 0 for no rows, and before anything was observed. What was never seen is foreseen carefully: a
  // further row like its nearest known neighbours, at worst like the first.
  base::Duration Predict(const StepShape& shape) const;

  bool measured() const { return observed_ > 0; }
  // Steps observed, and how often the machine was found to have changed its speed.
  uint64_t observed() const { return observed_; }
  uint64_t rescaled() const { return rescaled_; }

  // What a key costs, in rows: how the work of rows far back in a long prompt compares with that of
  // early ones. In [0, 1]; 0 while unknown.
  double KeyPrice() const { return key_price_; }

 private:
  static constexpr uint32_t kRowOctaves = 14;  // the last: above 4096 rows
  static constexpr uint32_t kKeyOctaves = 32;
  // From so many steps on a cell says what to expect; from twice as many on it is a surprise when
  // that does not come.
  static constexpr uint32_t kFamiliar = 5;
  // The first row; rows of octaves 1..; rows with logits; thousands of keys.
  static constexpr uint32_t kLogits = kRowOctaves, kKeys = kRowOctaves + 1;
  static constexpr uint32_t kFeatures = kRowOctaves + 2;
  using Features = std::array<double, kFeatures>;

  // Mean of the steps whose rows and keys lie in the same octaves. Rows-features are linear within
  // an octave: a mean shape has the mean features, and the mean time.
  struct Cell {
    double rows = 0, logits_rows = 0, keys = 0, ns = 0;
    uint32_t count = 0;                        // at most kMemory
    std::array<double, kFamiliar> first_ns{};  // sorted; used as long as count <= kFamiliar
  };

  static Features FeaturesOf(double rows, double logits_rows, double keys);
  double Curve(const Features& features) const;
  // By how much all was scaled because of it; 1: not.
  double NoteSurprise(double ratio);
  void Fit();
  // The normal equations of all cells, in relative errors.
  void Collect(std::array<Features, kFeatures>& normal, Features& target) const;
  // The coefficients that fit best when the dropped ones are 0.
  static Features Solve(const std::array<Features, kFeatures>& normal, const Features& target,
                        const std::array<bool, kFeatures>& dropped);

  std::array<std::array<Cell, kKeyOctaves>, kRowOctaves> cells_{};
  Features coefficients_{};  // ns, each >= 0
  double key_price_ = 0;
  uint64_t observed_ = 0;
  uint64_t rescaled_ = 0;
  // Consecutive steps that were all slower or all faster than expected, and the least of it.
  int32_t surprises_ = 0;
  double surprise_ = 1;
};

}  // namespace plumb::engine
