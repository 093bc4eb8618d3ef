// tensor/weight_arena.h
// Memory for the weights of one model: large chunks on huge pages, cut up in order and freed
// together. Matrices of a few hundred KiB in memory of their own would lie on 4 KiB pages, which
// costs a small model 10-25 % of its decode speed (SmolLM2-135M: 197 against 244 tokens/s on one
// core).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "tensor/aligned_buffer.h"

namespace plumb::tensor {

// A resource type. Whatever was cut from it must not outlive it. Thread: one at a time.
class WeightArena {
 public:
  // `size` zero bytes aligned to 64. kOverloaded: out of memory.
  base::Result<std::byte*> Allocate(uint64_t size);

 private:
  std::vector<AlignedBuffer> chunks_;
  uint64_t used_ = 0;  // of the last chunk
};

}  // namespace plumb::tensor
