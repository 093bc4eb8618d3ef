// base/affinity.cc
// The kernel's masks, behind base/affinity.h. A mask as long as the C library's type holds 1024
// processors only, and the kernel refuses one that is shorter than its own.
#include "base/affinity.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace plumb::base {
namespace {

constexpr uint32_t kProcessorsMax = 1u << 20;

// A cpu_set_t for `count` processors, all of them off.
class ProcessorMask {
 public:
  explicit ProcessorMask(uint32_t count) : size_(CPU_ALLOC_SIZE(count)), set_(CPU_ALLOC(count)) {
    CHECK(set_ != nullptr) << count;
    CPU_ZERO_S(size_, set_);
  }
  ~ProcessorMask() { CPU_FREE(set_); }
  ProcessorMask(const ProcessorMask&) = delete;
  ProcessorMask& operator=(const ProcessorMask&) = delete;

  size_t size() const { return size_; }
  cpu_set_t* get() const { return set_; }

 private:
  size_t size_;
  cpu_set_t* set_;
};

}  // namespace

std::vector<uint32_t> AllowedProcessors() {
  std::vector<uint32_t> processors;
  // The kernel refuses a mask shorter than its own, whose length it does not tell.
  for (uint32_t count = CPU_SETSIZE; count <= kProcessorsMax; count *= 2) {
    const ProcessorMask mask(count);
    if (sched_getaffinity(0, mask.size(), mask.get()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (CPU_ISSET_S(i, mask.size(), mask.get())) processors.push_back(i);
    }
    break;
  }
  return processors;
}

bool RestrictToProcessors(std::span<const uint32_t> processors) {
  if (processors.empty()) return false;
  const uint32_t last = *std::max_element(processors.begin(), processors.end());
  if (last >= kProcessorsMax) return false;
  const ProcessorMask mask(last + 1);
  for (const uint32_t processor : processors) CPU_SET_S(processor, mask.size(), mask.get());
  return sched_setaffinity(0, mask.size(), mask.get()) == 0;
}

unsigned ProcessorsOf(size_t allowed, std::optional<double> quota) {
  size_t count = std::clamp<size_t>(allowed, 1, kProcessorsMax);
  if (quota && *quota < static_cast<double>(count)) count = static_cast<size_t>(*quota);
  return std::max(1u, static_cast<unsigned>(count));
}

}  // namespace plumb::base
