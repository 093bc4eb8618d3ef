// telemetry/instruments.cc
// Lock-free counting; see instruments.h.
#include "telemetry/instruments.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace plumb::telemetry {

namespace {

constexpr std::string_view kOther = "other";

size_t IndexOf(const CounterGrid::Label& label, std::string_view value) {
  for (size_t i = 0; i + 1 < label.values.size(); ++i) {
    if (label.values[i] == value) return i;
  }
  return label.values.size() - 1;
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds) : bounds_count_(bounds.size()) {
  CHECK(!bounds.empty() && bounds.size() < kBucketsMax) << bounds.size() << " bounds";
  CHECK(std::is_sorted(bounds.begin(), bounds.end())) << "bounds must rise";
  std::copy(bounds.begin(), bounds.end(), bounds_.begin());
}

void Histogram::Observe(double value) {
  if (std::isnan(value)) return;
  const std::span<const double> bounds(bounds_.data(), bounds_count_);
  const auto bucket =
      static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin());
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::snapshot() const {
  Snapshot snapshot;
  snapshot.bounds.assign(bounds_.begin(), bounds_.begin() + bounds_count_);
  for (size_t i = 0; i <= bounds_count_; ++i) {
    snapshot.counts.push_back(counts_[i].load(std::memory_order_relaxed));
    snapshot.count += snapshot.counts.back();
  }
  snapshot.sum = sum_.load(std::memory_order_relaxed);
  return snapshot;
}

CounterGrid::CounterGrid(Label first, Label second)
    : first_(std::move(first)), second_(std::move(second)) {
  CHECK(!first_.name.empty());
  first_.values.emplace_back(kOther);
  second_.values.emplace_back(kOther);
  counters_ = std::vector<Counter>(first_.values.size() * second_.values.size());
}

Counter& CounterGrid::At(std::string_view first, std::string_view second) {
  return counters_[IndexOf(first_, first) * second_.values.size() + IndexOf(second_, second)];
}

const Counter& CounterGrid::AtIndex(size_t first, size_t second) const {
  CHECK(first < first_.values.size() && second < second_.values.size());
  return counters_[first * second_.values.size() + second];
}

}  // namespace plumb::telemetry
