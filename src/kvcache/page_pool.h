// kvcache/page_pool.h
// The memory of all keys and values: one allocation made at start, cut into equal pages, handed out
// by number. A page is opaque bytes; it is free exactly when nothing refers to it (DESIGN,
// invariant 5). It is given out again without being cleared: whoever takes it writes before
// reading. Thread: engine thread only, except where said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "kvcache/mapped_memory.h"

namespace plumb::kvcache {

// A page's place in the pool; below PagePool::total().
enum class PageId : uint32_t {};
constexpr uint32_t Index(PageId id) { return static_cast<uint32_t>(id); }

// All that this module learns of a model.
struct PageLayout {
  uint32_t page_tokens = 0;       // tokens that share a page
  uint64_t page_bytes = 0;        // of one page, all layers
  uint64_t checkpoint_bytes = 0;  // what else is needed to go on from a page boundary; 0: nothing

  // Pages that hold `tokens` tokens.
  uint32_t PagesFor(uint64_t tokens) const {
    return static_cast<uint32_t>((tokens + page_tokens - 1) / page_tokens);
  }
};

// A resource type.
class PagePool {
 public:
  // As many pages as fit in `budget_bytes`; checkpoints are not among them (checkpoint_store.h).
  // kInvalidArgument (field "kv_budget_bytes"): not one page fits, more than kPagesMax would, or
  // the system refuses the memory.
  static base::Result<std::unique_ptr<PagePool>> Create(const PageLayout& layout,
                                                        uint64_t budget_bytes);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // A free page with one reference, or nothing when none is free. The order in which pages are
  // given out depends on the calls alone.
  std::optional<PageId> Allocate();
  // One more, one fewer reference; the last one frees the page. A bug (CHECK) on a free page.
  void Retain(PageId id);
  void Release(PageId id);

  uint32_t references(PageId id) const;
  uint32_t free() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t total() const { return total_; }             // thread: any
  const PageLayout& layout() const { return layout_; }  // thread: any

  // The page's memory, page_bytes long, aligned to kAlignment. Allocated pages only (CHECK).
  std::span<std::byte> Data(PageId id);
  // All bytes of `from`, into `to`; both allocated (CHECK).
  void Copy(PageId from, PageId to);

  // Memory that a page takes: page_bytes rounded up to kAlignment.
  static uint64_t StrideBytes(const PageLayout& layout);

  static constexpr uint64_t kAlignment = MappedMemory::kAlignment;
  static constexpr uint64_t kPagesMax = 1u << 26;

 private:
  PagePool(const PageLayout& layout, uint32_t total, std::unique_ptr<MappedMemory> memory);

  const PageLayout layout_;
  const uint64_t stride_bytes_;
  const uint32_t total_;
  const std::unique_ptr<MappedMemory> memory_;
  std::vector<PageId> free_;          // a stack
  std::vector<uint32_t> references_;  // [total]; 0 = free
};

}  // namespace plumb::kvcache
