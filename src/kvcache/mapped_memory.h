// kvcache/mapped_memory.h
// One large allocation for the life of its owner, straight from the system: what is not touched
// costs nothing, and huge pages are asked for. Who lives on one: page_pool.h, checkpoint_store.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace plumb::kvcache {

// A resource type. Thread: any.
class MappedMemory {
 public:
  // `bytes` > 0 bytes of zeros, aligned to kAlignment; null when the system refuses.
  static std::unique_ptr<MappedMemory> Create(uint64_t bytes);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  std::byte* data() const { return data_; }

  static constexpr uint64_t kAlignment = 4096;

 private:
  MappedMemory(std::byte* data, uint64_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* const data_;
  const uint64_t bytes_;
};

}  // namespace plumb::kvcache
