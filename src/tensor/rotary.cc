// tensor/rotary.cc: the table. Angles are products in double; one rounding to f32 at the end.
// Double, because an f32 angle near 10^5 is off by up to 0.004.
#include "tensor/rotary.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/bytes.h"
#include "tensor/exact_math.h"

namespace plumb::tensor {
namespace {

constexpr uint32_t kRotaryDimsMax = 1024;

base::Status Check(const RotaryConfig& config) {
  if (config.dims < 2 || config.dims % 2 != 0 || config.dims > kRotaryDimsMax) {
    return base::InvalidArgument("rope.dimension_count",
                                 fmt::format("{} is not an even number in [2, 1024]", config.dims));
  }
  if (config.positions_max == 0) {
    return base::InvalidArgument("context_length", "a rotary table of 0 positions");
  }
  if (!std::isfinite(config.base) || config.base <= 0 || !std::isfinite(config.position_scale)) {
    return base::InvalidArgument("rope.freq_base",
                                 fmt::format("base {} and scale {} must be finite, base above 0",
                                             config.base, config.position_scale));
  }
  if (!config.frequency_factors.empty() && config.frequency_factors.size() != config.dims / 2) {
    return base::InvalidArgument(
        "rope_freqs.weight",
        fmt::format("{} factors for {} pairs", config.frequency_factors.size(), config.dims / 2));
  }
  for (const float factor : config.frequency_factors) {
    if (!std::isfinite(factor) || factor == 0) {
      return base::InvalidArgument("rope_freqs.weight", fmt::format("a factor is {}", factor));
    }
  }
  return base::OkStatus();
}

}  // namespace

base::Result<RotaryTable> RotaryTable::Build(const RotaryConfig& config, ThreadPool& pool) {
  RETURN_IF_ERROR(Check(config));
  const uint32_t pairs = config.dims / 2;
  std::vector<double> frequencies(pairs);
  for (uint32_t i = 0; i < pairs; ++i) {
    const double exponent = -2.0 * i / config.dims;
    frequencies[i] = config.position_scale * ExactPow(config.base, exponent);
    if (!config.frequency_factors.empty()) frequencies[i] /= double{config.frequency_factors[i]};
  }
  RotaryTable table;
  table.dims_ = config.dims;
  table.positions_max_ = config.positions_max;
  ASSIGN_OR_RETURN(table.buffer_, AlignedBuffer::Allocate(uint64_t{config.positions_max} *
                                                          config.dims * sizeof(float)));
  auto* rows = reinterpret_cast<float*>(table.buffer_.data());
  constexpr uint32_t kPositionsPerItem = 64;
  const uint32_t items = (config.positions_max + kPositionsPerItem - 1) / kPositionsPerItem;
  pool.ParallelFor(items, [&](uint32_t item) {
    for (uint32_t k = 0; k < kPositionsPerItem; ++k) {
      const uint64_t position = uint64_t{item} * kPositionsPerItem + k;
      if (position >= config.positions_max) return;
      float* row = rows + position * config.dims;
      for (uint32_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(position) * frequencies[i];
        row[i] = static_cast<float>(ExactCos(angle));
        row[pairs + i] = static_cast<float>(ExactSin(angle));
      }
    }
  });
  return table;
}

}  // namespace plumb::tensor
