// model/families/deepseek_rotary.cc: an angle is float(position) * frequency, rounded to f32 as the
// reference does; cosine and sine of that f32 number in double, rounded once.
#include "model/families/deepseek_rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "tensor/exact_math.h"

namespace plumb::model {
namespace {

constexpr uint32_t kDimsMax = 1024;

void FillRow(std::span<const float> frequencies, uint32_t position, float* cosines, float* sines,
             float* sines_back) {
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float angle = static_cast<float>(position) * frequencies[i];
    cosines[i] = static_cast<float>(tensor::ExactCos(double{angle}));
    sines[i] = static_cast<float>(tensor::ExactSin(double{angle}));
    sines_back[i] = -sines[i];
  }
}

// Where YaRN's ramp begins and ends, in pairs. The logarithm of the C library is good enough: what
// matters is its integer part.
std::pair<double, double> YarnRamp(uint32_t dims, double base, const DeepseekYarn& yarn) {
  const auto pair_of = [&](double rotations) {
    const double ratio = yarn.original_positions / (rotations * 2 * std::numbers::pi);
    return dims * std::log(ratio) / (2 * std::log(base));
  };
  const double low = std::max(std::floor(pair_of(yarn.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_of(yarn.beta_slow)), dims - 1.0);
  if (low == high) high += 0.001;
  return {low, high};
}

}  // namespace

std::vector<float> RotaryFrequencies(uint32_t dims, double base,
                                     const std::optional<DeepseekYarn>& yarn) {
  CHECK(dims % 2 == 0 && dims <= kDimsMax) << dims;
  std::vector<float> frequencies(dims / 2);
  for (uint32_t i = 0; i < frequencies.size(); ++i) {
    const double full = 1.0 / tensor::ExactPow(base, 2.0 * i / dims);
    if (!yarn) {
      frequencies[i] = static_cast<float>(full);
      continue;
    }
    const auto [low, high] = YarnRamp(dims, base, *yarn);
    const double keep = 1.0 - std::clamp((i - low) / (high - low), 0.0, 1.0);
    frequencies[i] = static_cast<float>(full / yarn->factor * (1.0 - keep) + full * keep);
  }
  return frequencies;
}

base::Result<DeepseekRotary> DeepseekRotary::Create(const DeepseekConfig& config,
                                                    uint32_t rows_max) {
  DeepseekRotary self;
  self.dims_ = config.rope_dims;
  self.rows_max_ = rows_max;
  self.frequencies_[0] = RotaryFrequencies(config.rope_dims, config.rope_base, std::nullopt);
  self.frequencies_[1] =
      RotaryFrequencies(config.rope_dims, config.rope_base_compress, config.yarn);
  for (auto& rows : self.rows_) {
    ASSIGN_OR_RETURN(rows, Scratch<float>::Allocate(uint64_t{rows_max} * config.rope_dims / 2 * 3));
  }
  return self;
}

void DeepseekRotary::Begin(tensor::Compute compute, std::span<const uint32_t> positions) {
  CHECK(positions.size() <= rows_max_) << positions.size();
  constexpr uint32_t kCost = 64;  // of a value, in values of simpler loops
  const uint32_t pairs = dims_ / 2;
  const auto rows = static_cast<uint32_t>(positions.size());
  ForEachRow(compute, rows, uint64_t{dims_} * kCost, [&](uint32_t row) {
    for (uint32_t kind = 0; kind < 2; ++kind) {
      float* first = rows_[kind].data() + uint64_t{row} * 3 * pairs;
      FillRow(frequencies_[kind], positions[row], first, first + pairs, first + 2 * pairs);
    }
  });
}

RotaryRow DeepseekRotary::Row(RotaryKind kind, uint32_t row) const {
  const uint32_t pairs = dims_ / 2;
  const float* first = rows_[static_cast<uint32_t>(kind)].data() + uint64_t{row} * 3 * pairs;
  return {first, first + pairs, first + 2 * pairs};
}

void DeepseekRotary::RotateLast(const tensor::KernelTable& kernels, RotaryRow row, uint32_t heads,
                                uint32_t head_dim, float* x) const {
  kernels.rotate(x + (head_dim - dims_), heads, head_dim, dims_, tensor::RotaryPairing::kAdjacent,
                 row.cosines, row.sines);
}

void DeepseekRotary::RotateLastBack(const tensor::KernelTable& kernels, RotaryRow row,
                                    uint32_t heads, uint32_t head_dim, float* x) const {
  row.sines = row.sines_back;
  RotateLast(kernels, row, heads, head_dim, x);
}

void DeepseekRotary::RotateCompressed(const tensor::KernelTable& kernels, uint32_t position,
                                      uint32_t head_dim, float* x) const {
  float values[3][kDimsMax / 2];
  FillRow(frequencies_[1], position, values[0], values[1], values[2]);
  RotateLast(kernels, {values[0], values[1], values[2]}, 1, head_dim, x);
}

}  // namespace plumb::model
