// base/testing/allocation_count.h
// Counts every operator new of a test binary: included by exactly one of its files, as it replaces
// the global operators. C allocations are out of its sight.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace plumb::base::testing {
inline std::atomic<uint64_t> allocation_count{0};

inline void* CountedAllocation(size_t size) {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  std::abort();
}
}  // namespace plumb::base::testing

// Not inlined: GCC 12 would see malloc under one name and free under another, and warn. The forms
// that do not throw are replaced too, or a sanitizer's would meet this delete.
[[gnu::noinline]] void* operator new(size_t size) {
  return plumb::base::testing::CountedAllocation(size);
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return plumb::base::testing::CountedAllocation(size);
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  plumb::base::testing::allocation_count.fetch_add(1, std::memory_order_relaxed);
  const auto step = static_cast<size_t>(alignment);
  if (void* memory = std::aligned_alloc(step, (size + step - 1) / step * step)) return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
