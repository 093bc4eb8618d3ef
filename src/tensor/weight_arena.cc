// tensor/weight_arena.cc: pieces start at cache lines; what does not fit opens a new chunk.
// A chunk's unused tail costs address space, and memory only up to its last touched page.
#include "tensor/weight_arena.h"

#include <algorithm>

namespace plumb::tensor {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{16} << 20;
constexpr uint64_t kAlignment = 64;

}  // namespace

base::Result<std::byte*> WeightArena::Allocate(uint64_t size) {
  if (chunks_.empty() || size > chunks_.back().size() - used_) {
    ASSIGN_OR_RETURN(AlignedBuffer chunk, AlignedBuffer::Allocate(std::max(size, kChunkBytes)));
    chunks_.push_back(std::move(chunk));
    used_ = 0;
  }
  std::byte* piece = chunks_.back().data() + used_;
  const uint64_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  used_ = std::min(chunks_.back().size(), used_ + rounded);
  return piece;
}

}  // namespace plumb::tensor
