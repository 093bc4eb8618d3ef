// kvcache/checkpoint_store.h
// What some models need beside its pages to go on from a page boundary: opaque bytes, hung on the
// stored page that ends there, so named by all that they depend on. A bounded number of equal slots
// in one allocation made at start. A page may lose its checkpoint and stay; one that goes takes it
// along (prefix_tree.h). Those of pages with a hint go after others, as long as they are half at
// most; then of the owner that has most. See docs/prefix_cache.md. Thread: engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "kvcache/mapped_memory.h"
#include "kvcache/page_heap.h"
#include "kvcache/page_pool.h"

namespace plumb::kvcache {

// A resource type. No call but CheckInvariants allocates.
class CheckpointStore {
 public:
  // `slots` >= 1 of layout.checkpoint_bytes > 0 for the pages of a pool of `pages`.
  // kInvalidArgument (field "checkpoints_max"): the system refuses the memory.
  static base::Result<std::unique_ptr<CheckpointStore>> Create(const PageLayout& layout,
                                                               uint32_t pages, uint32_t slots);
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;

  // Whether the page has a checkpoint: of the boundary at its end.
  bool Has(PageId page) const { return slot_of_[Index(page)] != kNone; }

  // The checkpoint of a page that has one (CHECK), used now; valid until the next call of Add.
  std::span<const std::byte> Use(PageId page);

  // Where to write, at once, that of a page which has none (CHECK); aligned to kAlignment. When no
  // slot is free, the least recently used checkpoint goes: of those without a hint, but where there
  // are none, or the others more than half of all, of those with one: of the owner that has most of
  // them (of several, that of whichever was used least recently). Then it takes O(slots * owners).
  std::span<std::byte> Add(PageId page);

  // Whose hint the page has; nothing: none. Of a page without a checkpoint it means nothing, and a
  // new checkpoint begins without.
  void SetHint(PageId page, std::optional<uint64_t> owner);
  bool IsHinted(PageId page) const { return hinted_.Has(page); }

  // The page is given up: so is its checkpoint, if it has one.
  void Forget(PageId page);

  // Memory that a checkpoint takes: checkpoint_bytes rounded up to kAlignment.
  static uint64_t StrideBytes(const PageLayout& layout);

  uint32_t stored() const { return total_ - static_cast<uint32_t>(free_.size()); }
  uint32_t total() const { return total_; }
  uint64_t added() const { return added_; }          // ever
  uint64_t evictions() const { return evictions_; }  // for want of a slot

  // All that is promised here, in O(pages): for tests and simulations.
  void CheckInvariants() const;

  static constexpr uint64_t kAlignment = 64;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  CheckpointStore(const PageLayout& layout, uint32_t pages, uint32_t slots,
                  std::unique_ptr<MappedMemory> memory);
  std::byte* Data(uint32_t slot) const { return memory_->data() + slot * stride_bytes_; }
  PageId FirstHinted();

  const uint64_t checkpoint_bytes_;
  const uint64_t stride_bytes_;
  const std::unique_ptr<MappedMemory> memory_;
  const uint32_t total_;
  std::vector<uint32_t> slot_of_;  // [pages]; kNone
  std::vector<uint32_t> free_;     // a stack of slots
  PageHeap plain_, hinted_;        // pages that have one, by the number of its last use
  struct Slot {
    PageId page{};
    uint64_t owner = 0;  // of its hint
  };
  std::vector<Slot> slots_;  // [slots]; of a free one it means nothing
  struct Tally {
    uint64_t owner = 0;
    uint32_t count = 0;
    PageId oldest{};
  };
  std::vector<Tally> tallies_;  // FirstHinted's, at most one for each slot
  uint64_t uses_ = 0;
  uint64_t added_ = 0, evictions_ = 0;
};

}  // namespace plumb::kvcache
