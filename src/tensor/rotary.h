// tensor/rotary.h
// Rotary position embedding (Su et al. 2021, "RoFormer", section 3.4): a table of cosines and sines
// for every position, computed once in double precision by SLEEF (so equal on all machines), and
// the two ways in which model files pair dimensions.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "tensor/aligned_buffer.h"
#include "tensor/thread_pool.h"

namespace plumb::tensor {

enum class RotaryPairing : uint8_t {
  kAdjacent,  // (0, 1), (2, 3), ...: GGUF files of the llama architecture
  kHalves,    // (0, d/2), (1, d/2 + 1), ...: "neox": qwen2, gemma, and Hugging Face order
};

struct RotaryConfig {
  uint32_t dims = 0;            // rotated dimensions of a head: even, >= 2; the rest pass unchanged
  uint32_t positions_max = 0;   // >= 1
  double base = 10000.0;        // > 0, finite
  double position_scale = 1.0;  // 1/factor for linear scaling; finite
  // Empty, or dims / 2 divisors of the frequencies (Llama 3: tensor rope_freqs.weight).
  std::span<const float> frequency_factors;
};

// Angle of pair i at position p: p * position_scale * base^(-2i / dims) / frequency_factors[i].
// A resource type, immutable.
class RotaryTable {
 public:
  // kInvalidArgument: a value outside the ranges above, or a factor that is zero or not finite;
  // kOverloaded: out of memory.
  static base::Result<RotaryTable> Build(const RotaryConfig& config, ThreadPool& pool);

  RotaryTable() = default;
  uint32_t dims() const { return dims_; }
  uint32_t positions_max() const { return positions_max_; }
  // dims / 2 values each.
  const float* cosines(uint32_t position) const { return Row(position); }
  const float* sines(uint32_t position) const { return Row(position) + dims_ / 2; }

 private:
  const float* Row(uint32_t position) const {
    return reinterpret_cast<const float*>(buffer_.data()) + size_t{position} * dims_;
  }
  uint32_t dims_ = 0;
  uint32_t positions_max_ = 0;
  AlignedBuffer buffer_;  // [positions][cosines dims/2 | sines dims/2] f32
};

}  // namespace plumb::tensor
