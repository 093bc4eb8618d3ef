// engine/pooling.cc
// See pooling.h. The mean is not divided by the number of rows: its length goes away anyhow.
#include "engine/pooling.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/unit_vector.h"

namespace plumb::engine {

Pooler::Pooler(Pooling pooling, uint32_t width) : pooling_(pooling), sums_(width) {
  CHECK(pooling != Pooling::kNone && width > 0);
  embedding_.reserve(width);
}

base::Status Pooler::Add(std::span<const float> hidden) {
  const size_t width = sums_.size();
  CHECK(!hidden.empty() && hidden.size() % width == 0) << hidden.size();
  if (pooling_ == Pooling::kLast) hidden = hidden.last(width);
  // Whether all values are finite is asked of the sums: what is not stays so in them.
  for (; !hidden.empty(); hidden = hidden.subspan(width)) {
    for (size_t i = 0; i < width; ++i) {
      const double before = pooling_ == Pooling::kMean ? sums_[i] : 0;
      sums_[i] = before + static_cast<double>(hidden[i]);
    }
    ++rows_;
  }
  const bool finite = std::ranges::all_of(sums_, [](double sum) { return std::isfinite(sum); });
  if (!finite) return base::Internal("a hidden state is not finite");
  return base::OkStatus();
}

base::Status Pooler::Finish() {
  CHECK(rows_ > 0 && embedding_.empty());
  if (!base::AppendUnitVector(sums_, embedding_))
    return base::Internal("the pooled hidden states have no direction");
  return base::OkStatus();
}

}  // namespace plumb::engine
