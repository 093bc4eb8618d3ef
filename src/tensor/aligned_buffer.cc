// tensor/aligned_buffer.cc: anonymous maps, so that the zeroes cost nothing until touched.
// Pieces of a huge page and more start at one; a refused map is a circumstance, not a bug.
#include "tensor/aligned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/check.h"

namespace plumb::tensor {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

uint64_t RoundUp(uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; }

uint64_t MappedBytes(uint64_t size) {
  return RoundUp(size, size >= kHugePage ? kHugePage : uint64_t{4096});
}

void* Map(uint64_t size) {
  return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// A map of `size` bytes that starts at a huge page, cut out of a larger one.
void* MapHuge(uint64_t size) {
  void* base = Map(size + kHugePage);
  if (base == MAP_FAILED) return base;
  const auto begin = reinterpret_cast<uintptr_t>(base);
  const uintptr_t aligned = RoundUp(begin, kHugePage);
  if (aligned > begin) munmap(base, aligned - begin);
  const uintptr_t slack = begin + kHugePage - aligned;
  if (slack > 0) munmap(reinterpret_cast<void*>(aligned + size), slack);
  madvise(reinterpret_cast<void*>(aligned), size, MADV_HUGEPAGE);  // a wish; failure is no error
  return reinterpret_cast<void*>(aligned);
}

}  // namespace

base::Result<AlignedBuffer> AlignedBuffer::Allocate(uint64_t size) {
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  void* memory = MAP_FAILED;
  if (size < uint64_t{1} << 62) {
    memory = size >= kHugePage ? MapHuge(MappedBytes(size)) : Map(MappedBytes(size));
  }
  if (memory == MAP_FAILED) {
    return base::Status(
        base::Code::kOverloaded,
        fmt::format("no memory for {} bytes; use a smaller model or context", size));
  }
  buffer.data_ = static_cast<std::byte*>(memory);
  buffer.size_ = size;
  return buffer;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) munmap(data_, MappedBytes(size_));
}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace plumb::tensor
