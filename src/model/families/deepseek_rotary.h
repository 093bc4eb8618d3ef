// model/families/deepseek_rotary.h
// Rotation by position, of the last dimensions of a vector, in adjacent pairs. Two sets of
// frequencies: one for layers with a window only, one (with YaRN) for layers that compress. A
// million positions are too many for a table, so the rows of a step are computed at its beginning.
// Source: Peng et al. 2023, "YaRN"; formulas in docs/numerics_deepseek_v41.md, "Rotation".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_config.h"
#include "tensor/ops.h"

namespace plumb::model {

// dims / 2 angles per position, f32.
std::vector<float> RotaryFrequencies(uint32_t dims, double base,
                                     const std::optional<DeepseekYarn>& yarn);

// One position's values, dims / 2 each.
struct RotaryRow {
  const float* cosines = nullptr;
  const float* sines = nullptr;
  const float* sines_back = nullptr;  // -sines: rotates back
};

enum class RotaryKind : uint8_t { kWindow, kCompress };

// Thread: the model's; Row and RotateLast also from items of the pool.
class DeepseekRotary {
 public:
  // kOverloaded: out of memory.
  static base::Result<DeepseekRotary> Create(const DeepseekConfig& config, uint32_t rows_max);

  // Takes in the positions of a step's rows.
  void Begin(tensor::Compute compute, std::span<const uint32_t> positions);
  RotaryRow Row(RotaryKind kind, uint32_t row) const;

  // Rotates the last dims of `heads` vectors of head_dim values, in place.
  void RotateLast(const tensor::KernelTable& kernels, RotaryRow row, uint32_t heads,
                  uint32_t head_dim, float* x) const;
  void RotateLastBack(const tensor::KernelTable& kernels, RotaryRow row, uint32_t heads,
                      uint32_t head_dim, float* x) const;
  // The same of one vector at any position of the compressing layers.
  void RotateCompressed(const tensor::KernelTable& kernels, uint32_t position, uint32_t head_dim,
                        float* x) const;

 private:
  DeepseekRotary() = default;

  uint32_t dims_ = 0;
  uint32_t rows_max_ = 0;
  std::vector<float> frequencies_[2];  // by kind
  Scratch<float> rows_[2];             // [rows, cosines | sines | -sines]
};

}  // namespace plumb::model
