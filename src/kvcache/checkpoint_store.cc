// kvcache/checkpoint_store.cc
// A slot for each stored checkpoint, in a list by use; and which slot a page has.
#include "kvcache/checkpoint_store.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"

namespace plumb::kvcache {
uint64_t CheckpointStore::StrideBytes(const PageLayout& layout) {
  return (layout.checkpoint_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

base::Result<std::unique_ptr<CheckpointStore>> CheckpointStore::Create(const PageLayout& layout,
                                                                       uint32_t pages,
                                                                       uint32_t slots) {
  CHECK(layout.checkpoint_bytes > 0 && pages > 0 && slots > 0);
  const auto bytes = base::CheckedMul(StrideBytes(layout), slots);
  auto memory = bytes ? MappedMemory::Create(*bytes) : nullptr;
  if (memory == nullptr) {
    return base::InvalidArgument(
        "checkpoints_max",
        fmt::format("the system refuses the memory of {} checkpoints of {} bytes; keep fewer",
                    slots, layout.checkpoint_bytes));
  }
  return std::unique_ptr<CheckpointStore>(
      new CheckpointStore(layout, pages, slots, std::move(memory)));
}

CheckpointStore::CheckpointStore(const PageLayout& layout, uint32_t pages, uint32_t slots,
                                 std::unique_ptr<MappedMemory> memory)
    : checkpoint_bytes_(layout.checkpoint_bytes),
      stride_bytes_(StrideBytes(layout)),
      memory_(std::move(memory)),
      slot_of_(pages, kNone),
      slots_(slots) {
  free_.reserve(slots);
  for (uint32_t slot = slots; slot > 0; --slot) free_.push_back(slot - 1);
}

std::span<const std::byte> CheckpointStore::Use(PageId page) {
  CHECK(Has(page)) << "page " << Index(page) << " has no checkpoint";
  const uint32_t slot = slot_of_[Index(page)];
  Unlink(slot);
  Append(slot);
  return {Data(slot), checkpoint_bytes_};
}

std::span<std::byte> CheckpointStore::Add(PageId page) {
  CHECK(!Has(page)) << "page " << Index(page) << " has a checkpoint";
  if (free_.empty()) {
    Forget(PageId{slots_[oldest_].page});
    ++evictions_;
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot].page = Index(page);
  slot_of_[Index(page)] = slot;
  Append(slot);
  ++added_;
  return {Data(slot), checkpoint_bytes_};
}

void CheckpointStore::Forget(PageId page) {
  const uint32_t slot = slot_of_[Index(page)];
  if (slot == kNone) return;
  CHECK(slots_[slot].page == Index(page)) << "slot " << slot;
  Unlink(slot);
  slot_of_[Index(page)] = kNone;
  slots_[slot].page = kNone;
  free_.push_back(slot);
}

void CheckpointStore::Append(uint32_t slot) {
  slots_[slot].older = newest_;
  slots_[slot].newer = kNone;
  (newest_ == kNone ? oldest_ : slots_[newest_].newer) = slot;
  newest_ = slot;
}

void CheckpointStore::Unlink(uint32_t slot) {
  const Slot& gone = slots_[slot];
  (gone.older == kNone ? oldest_ : slots_[gone.older].newer) = gone.newer;
  (gone.newer == kNone ? newest_ : slots_[gone.newer].older) = gone.older;
}

void CheckpointStore::CheckInvariants() const {
  uint32_t listed = 0, pages = 0;
  for (uint32_t slot = oldest_; slot != kNone; slot = slots_[slot].newer) {
    CHECK(listed++ < stored()) << "the list is longer than what is stored";
    CHECK(slot_of_[slots_[slot].page] == slot) << "slot " << slot;
    CHECK(slots_[slot].newer == kNone ? newest_ == slot : slots_[slots_[slot].newer].older == slot);
  }
  CHECK(listed == stored()) << listed << " of " << stored();
  for (const uint32_t slot : slot_of_) pages += slot != kNone;
  CHECK(pages == stored()) << pages << " of " << stored();
  for (const uint32_t slot : free_) CHECK(slots_[slot].page == kNone) << "slot " << slot;
}

}  // namespace plumb::kvcache
