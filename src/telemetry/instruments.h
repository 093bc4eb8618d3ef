// telemetry/instruments.h
// What is counted with: counters, gauges and histograms that may be touched in the step loop, since
// they never lock, allocate or block. (prometheus-cpp's own histogram takes a mutex; that library
// only writes the text, in metrics.cc.) Read next: telemetry/metrics.h.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace plumb::telemetry {

// Only grows. Thread: any.
class Counter {
 public:
  void Add(uint64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  // For a count that is kept elsewhere and copied here before it is shown.
  void SetTotal(uint64_t total) { value_.store(total, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Goes up and down. Thread: any.
class Gauge {
 public:
  void Set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Add(int64_t amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// A distribution over fixed buckets. Thread: any; a reader may see an observation in its bucket
// before it sees it in the sum.
class Histogram {
 public:
  static constexpr size_t kBucketsMax = 32;

  // `bounds`: upper bounds, inclusive, rising, at most kBucketsMax - 1; one bucket above them all
  // is added.
  explicit Histogram(std::span<const double> bounds);

  void Observe(double value);  // NaN is dropped
  void Observe(base::Duration duration) { Observe(duration.seconds()); }

  struct Snapshot {
    std::vector<double> bounds;
    std::vector<uint64_t> counts;  // one more than bounds; each bucket alone, not cumulative
    uint64_t count = 0;
    double sum = 0;
  };
  Snapshot snapshot() const;

 private:
  std::array<double, kBucketsMax> bounds_{};
  size_t bounds_count_ = 0;
  std::array<std::atomic<uint64_t>, kBucketsMax> counts_{};
  std::atomic<double> sum_{0};
};

// Counters by the values of one or two labels. The values are fixed at construction and anything
// else counts as "other", so that no client can grow the set.
class CounterGrid {
 public:
  struct Label {
    std::string name;
    std::vector<std::string> values;
  };
  explicit CounterGrid(Label first, Label second = {});

  Counter& At(std::string_view first, std::string_view second = "");

  const Label& first() const { return first_; }    // "other" is the last value
  const Label& second() const { return second_; }  // without name: there is only one label
  const Counter& AtIndex(size_t first, size_t second) const;

 private:
  Label first_;
  Label second_;
  std::vector<Counter> counters_;  // [first values, second values]
};

}  // namespace plumb::telemetry
