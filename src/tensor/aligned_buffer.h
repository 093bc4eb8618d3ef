// tensor/aligned_buffer.h
// Zeroed memory for weights and activations, aligned for vectors; large pieces ask for huge pages,
// since streaming weights through 4 KiB pages loses bandwidth to TLB misses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"

namespace plumb::tensor {

// A resource type that moves. Empty by default.
class AlignedBuffer {
 public:
  // `size` zero bytes, aligned to 64. kOverloaded: the system refuses so much memory.
  static base::Result<AlignedBuffer> Allocate(uint64_t size);

  AlignedBuffer() = default;
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept { *this = std::move(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::span<std::byte> bytes() { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace plumb::tensor
