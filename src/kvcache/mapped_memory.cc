// kvcache/mapped_memory.cc
// mmap, rounded up to whole huge pages. Not reserved: the budget is the operator's affair, and the
// system gives memory as it is touched.
#include "kvcache/mapped_memory.h"

#include <sys/mman.h>

#include "base/check.h"

namespace plumb::kvcache {

std::unique_ptr<MappedMemory> MappedMemory::Create(uint64_t bytes) {
  constexpr uint64_t kHugePageBytes = 2u << 20;
  CHECK(bytes > 0);
  if (bytes > UINT64_MAX - kHugePageBytes) return nullptr;
  bytes = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Advice only: without huge pages everything still works, a little slower.
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  return std::unique_ptr<MappedMemory>(new MappedMemory(static_cast<std::byte*>(memory), bytes));
}

MappedMemory::~MappedMemory() { CHECK(munmap(data_, bytes_) == 0); }

}  // namespace plumb::kvcache
