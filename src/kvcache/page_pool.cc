// kvcache/page_pool.cc
// One allocation, then a stack of free pages and a reference count for each.
#include "kvcache/page_pool.h"

#include <fmt/format.h>

#include <cstring>

#include "base/check.h"

namespace plumb::kvcache {
uint64_t PagePool::StrideBytes(const PageLayout& layout) {
  return (layout.page_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

base::Result<std::unique_ptr<PagePool>> PagePool::Create(const PageLayout& layout,
                                                         uint64_t budget_bytes) {
  CHECK(layout.page_tokens > 0 && layout.page_bytes > 0) << "a page layout without size";
  const uint64_t stride = StrideBytes(layout);
  const uint64_t pages = budget_bytes / stride;
  if (pages == 0 || pages > kPagesMax) {
    return base::InvalidArgument(
        "kv_budget_bytes",
        fmt::format("a KV budget of {} bytes holds {} pages of {} bytes; between 1 and {} are "
                    "needed, so set it accordingly",
                    budget_bytes, pages, stride, kPagesMax));
  }
  auto memory = MappedMemory::Create(pages * stride);
  if (memory == nullptr) {
    return base::InvalidArgument(
        "kv_budget_bytes",
        fmt::format("the system refuses {} bytes for keys and values; lower the KV budget",
                    pages * stride));
  }
  return std::unique_ptr<PagePool>(
      new PagePool(layout, static_cast<uint32_t>(pages), std::move(memory)));
}

PagePool::PagePool(const PageLayout& layout, uint32_t total, std::unique_ptr<MappedMemory> memory)
    : layout_(layout),
      stride_bytes_(StrideBytes(layout)),
      total_(total),
      memory_(std::move(memory)),
      references_(total, 0) {
  free_.reserve(total);
  for (uint32_t page = total; page > 0; --page) free_.push_back(PageId{page - 1});
}

PagePool::~PagePool() {
  CHECK(free() == total_) << total_ - free() << " pages are still referred to";
}

std::optional<PageId> PagePool::Allocate() {
  if (free_.empty()) return std::nullopt;
  const PageId id = free_.back();
  free_.pop_back();
  CHECK(references_[Index(id)] == 0) << "page " << Index(id) << " is on the free list and in use";
  references_[Index(id)] = 1;
  return id;
}

void PagePool::Retain(PageId id) {
  CHECK(references(id) > 0) << "page " << Index(id) << " is free";
  CHECK(references_[Index(id)] < UINT32_MAX);
  ++references_[Index(id)];
}

void PagePool::Release(PageId id) {
  CHECK(references(id) > 0) << "page " << Index(id) << " is freed twice";
  if (--references_[Index(id)] == 0) free_.push_back(id);
  CHECK(free() <= total_);
}

uint32_t PagePool::references(PageId id) const {
  CHECK(Index(id) < total_) << "page " << Index(id) << " of " << total_;
  return references_[Index(id)];
}

std::span<std::byte> PagePool::Data(PageId id) {
  CHECK(references(id) > 0) << "page " << Index(id) << " is free";
  return {memory_->data() + Index(id) * stride_bytes_, layout_.page_bytes};
}

void PagePool::Copy(PageId from, PageId to) {
  CHECK(from != to);
  std::memcpy(Data(to).data(), Data(from).data(), layout_.page_bytes);
}

}  // namespace plumb::kvcache
