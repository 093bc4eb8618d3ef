// eval/speed/gateway/report.cc
// See report.h. A percentile is a latency that occurred: the smallest with so many at or below it.
#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plumb::speed {

std::string Report::Json(base::Duration total) const {
  std::vector<base::Duration> sorted = latencies_;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    if (sorted.empty()) return 0.0;
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::max<size_t>(rank, 1) - 1].seconds() * 1e3;
  };
  return fmt::format(
      R"({{"requests":{},"seconds":{:.4f},"p50_ms":{:.4f},"p90_ms":{:.4f},"p99_ms":{:.4f},)"
      R"("max_ms":{:.4f}}})",
      sorted.size(), total.seconds(), at(0.5), at(0.9), at(0.99), at(1));
}

}  // namespace plumb::speed
