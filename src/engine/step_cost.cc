// engine/step_cost.cc
// Observe: one cell's mean. Fit: least squares over the cells with non-negative coefficients, by
// solving, dropping what came out negative, and solving again.
#include "engine/step_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "base/check.h"

namespace plumb::engine {
namespace {

// The mean of a cell is over about so many of its latest steps.
constexpr uint32_t kMemory = 16;
// A single step counts as so many times slower or faster than expected at most. So many in a row
// that are off by more, all to one side: the machine has changed.
constexpr double kSurprise = 1.25;
constexpr int32_t kSurprisesForChange = 4;
// A familiar cell changes slowly: the curve is drawn again once in so many steps then.
constexpr uint64_t kFitEvery = 8;

// Weights of what is assumed where nothing is measured, against relative errors squared times the
// steps of a cell: neighbouring octaves cost alike; the second row costs like the first; rows with
// logits and keys cost nothing beyond their row.
constexpr double kSmooth = 1e-2;
constexpr double kSecondLikeFirst = 1e-4;
constexpr double kNothing = 1e-6;

constexpr double kKeysUnit = 1024;

}  // namespace

void StepCost::Observe(const StepShape& shape, base::Duration elapsed) {
  if (shape.rows == 0 || elapsed.ns <= 0) return;
  const auto octave = [](uint64_t value, uint32_t octaves) {
    return std::min(static_cast<uint32_t>(std::bit_width(value)), octaves - 1);
  };
  Cell& cell = cells_[octave(shape.rows - 1, kRowOctaves)][octave(shape.keys, kKeyOctaves)];
  double ns = static_cast<double>(elapsed.ns);
  if (cell.count >= kFamiliar) {
    // The cell's own mean, moved along the curve to this very shape.
    const double here =
        Curve(FeaturesOf(shape.rows, shape.logits_rows, static_cast<double>(shape.keys)));
    const double mean = Curve(FeaturesOf(cell.rows, cell.logits_rows, cell.keys));
    const double expected = here > 0 && mean > 0 ? cell.ns * here / mean : cell.ns;
    const double ratio = ns / expected;
    const double change = cell.count < 2 * kFamiliar ? 1 : NoteSurprise(ratio);
    ns = expected * (change != 1 ? change : std::clamp(ratio, 1 / kSurprise, kSurprise));
  }
  const bool young = cell.count < kMemory;
  cell.count += young;
  const double weight = 1.0 / cell.count;
  cell.rows += weight * (shape.rows - cell.rows);
  cell.logits_rows += weight * (shape.logits_rows - cell.logits_rows);
  cell.keys += weight * (static_cast<double>(shape.keys) - cell.keys);
  if (cell.count <= kFamiliar) {
    // The median of the first few: an odd one among them does not spoil it.
    auto& first = cell.first_ns;
    first[cell.count - 1] = ns;
    std::sort(first.begin(), first.begin() + cell.count);
    cell.ns = first[(cell.count - 1) / 2];
  } else {
    cell.ns += weight * (ns - cell.ns);
  }
  ++observed_;
  if (young || observed_ % kFitEvery == 0) Fit();
}

double StepCost::NoteSurprise(double ratio) {
  const bool slower = ratio > kSurprise, faster = ratio < 1 / kSurprise;
  if (!slower && !faster) {
    surprises_ = 0;
    return 1;
  }
  if ((slower && surprises_ < 0) || (faster && surprises_ > 0)) surprises_ = 0;
  surprise_ = surprises_ == 0 ? ratio
              : slower        ? std::min(surprise_, ratio)
                              : std::max(surprise_, ratio);
  surprises_ += slower ? 1 : -1;
  if (std::abs(surprises_) < kSurprisesForChange) return 1;
  for (auto& octave : cells_) {
    for (Cell& cell : octave) {
      cell.ns *= surprise_;
      for (double& ns : cell.first_ns) ns *= surprise_;
    }
  }
  surprises_ = 0;
  ++rescaled_;
  Fit();
  return surprise_;
}

base::Duration StepCost::Predict(const StepShape& shape) const {
  if (shape.rows == 0) return {0};
  const double ns =
      Curve(FeaturesOf(shape.rows, shape.logits_rows, static_cast<double>(shape.keys)));
  // A year: callers add and double it.
  return {static_cast<int64_t>(std::min(ns, 3e16))};
}

StepCost::Features StepCost::FeaturesOf(double rows, double logits_rows, double keys) {
  Features features{};
  features[0] = 1;
  for (uint32_t octave = 1; octave < kRowOctaves; ++octave) {
    const double first = static_cast<double>(1u << (octave - 1));
    if (rows <= first) break;
    features[octave] = octave + 1 < kRowOctaves ? std::min(rows - first, first) : rows - first;
  }
  features[kLogits] = logits_rows;
  features[kKeys] = keys / kKeysUnit;
  return features;
}

double StepCost::Curve(const Features& features) const {
  double ns = 0;
  for (uint32_t i = 0; i < kFeatures; ++i) ns += coefficients_[i] * features[i];
  return ns;
}

void StepCost::Collect(std::array<Features, kFeatures>& normal, Features& target) const {
  normal = {};
  target = {};
  double row_ns = 0;  // of the cheapest rows: what a coefficient is compared with
  for (const auto& octave : cells_) {
    for (const Cell& cell : octave) {
      if (cell.count == 0) continue;
      const double each = cell.ns / cell.rows;
      row_ns = row_ns == 0 ? each : std::min(row_ns, each);
      const Features features = FeaturesOf(cell.rows, cell.logits_rows, cell.keys);
      const double weight = cell.count / (cell.ns * cell.ns);
      for (uint32_t i = 0; i < kFeatures; ++i) {
        if (features[i] == 0) continue;
        target[i] += weight * features[i] * cell.ns;
        for (uint32_t j = 0; j <= i; ++j) normal[i][j] += weight * features[i] * features[j];
      }
    }
  }
  const double unit = 1 / (row_ns * row_ns);
  const auto alike = [&](uint32_t a, uint32_t b, double weight) {
    normal[a][a] += weight * unit;
    normal[b][b] += weight * unit;
    normal[b][a] -= weight * unit;
  };
  alike(0, 1, kSecondLikeFirst);
  for (uint32_t octave = 2; octave < kRowOctaves; ++octave) alike(octave - 1, octave, kSmooth);
  normal[kLogits][kLogits] += kNothing * unit;
  normal[kKeys][kKeys] += kNothing * unit;
}

StepCost::Features StepCost::Solve(const std::array<Features, kFeatures>& normal,
                                   const Features& target,
                                   const std::array<bool, kFeatures>& dropped) {
  // Cholesky; a dropped coefficient has the row and column of the unit matrix.
  std::array<Features, kFeatures> root{};
  Features solution{};
  for (uint32_t i = 0; i < kFeatures; ++i) {
    for (uint32_t j = 0; j <= i; ++j) {
      double sum = dropped[i] || dropped[j] ? static_cast<double>(i == j) : normal[i][j];
      for (uint32_t k = 0; k < j; ++k) sum -= root[i][k] * root[j][k];
      root[i][j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / root[j][j];
    }
    double sum = dropped[i] ? 0 : target[i];
    for (uint32_t k = 0; k < i; ++k) sum -= root[i][k] * solution[k];
    solution[i] = sum / root[i][i];
  }
  for (uint32_t i = kFeatures; i-- > 0;) {
    for (uint32_t k = i + 1; k < kFeatures; ++k) solution[i] -= root[k][i] * solution[k];
    solution[i] /= root[i][i];
  }
  return solution;
}

void StepCost::Fit() {
  std::array<Features, kFeatures> normal;
  Features target;
  Collect(normal, target);
  std::array<bool, kFeatures> dropped{};
  for (;;) {
    coefficients_ = Solve(normal, target, dropped);
    // The one that is furthest below zero, by what it contributes, goes; each at most once.
    uint32_t lowest = kFeatures;
    double depth = 0;
    for (uint32_t i = 0; i < kFeatures; ++i) {
      CHECK(std::isfinite(coefficients_[i])) << "coefficient " << i;
      const double contribution = coefficients_[i] * std::sqrt(normal[i][i]);
      if (contribution >= depth) continue;
      depth = contribution;
      lowest = i;
    }
    if (lowest == kFeatures) break;
    CHECK(!dropped[lowest]) << lowest;
    dropped[lowest] = true;
  }
  // Between a row and thirty-two: the parts of prompts that are computed beside running answers.
  const double row = (Curve(FeaturesOf(32, 0, 0)) - Curve(FeaturesOf(1, 0, 0))) / 31;
  key_price_ = row > 0 ? std::min(coefficients_[kKeys] / kKeysUnit / row, 1.0) : 0;
}

}  // namespace plumb::engine
