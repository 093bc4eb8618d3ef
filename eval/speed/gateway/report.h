// eval/speed/gateway/report.h
// How long answers took, and what a measurement says of them, as one line of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace plumb::speed {

// A value type.
class Report {
 public:
  // From when the request was due to the last byte of its answer.
  void Add(base::Duration latency) { latencies_.push_back(latency); }
  // {"requests":..,"seconds":..,"p50_ms":..,"p90_ms":..,"p99_ms":..,"max_ms":..}
  std::string Json(base::Duration total) const;

 private:
  std::vector<base::Duration> latencies_;
};

}  // namespace plumb::speed
