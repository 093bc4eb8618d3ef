// kvcache/checkpoint_store.cc
// A slot for each page that has a checkpoint, and these pages in one of two heaps by use.
#include "kvcache/checkpoint_store.h"

#include <fmt/format.h>

#include <algorithm>

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
      total_(slots),
      slot_of_(pages, kNone),
      plain_(pages),
      hinted_(pages),
      slots_(slots) {
  free_.reserve(slots);
  tallies_.reserve(slots);
  for (uint32_t slot = slots; slot > 0; --slot) free_.push_back(slot - 1);
}

std::span<const std::byte> CheckpointStore::Use(PageId page) {
  CHECK(Has(page)) << "page " << Index(page) << " has no checkpoint";
  (IsHinted(page) ? hinted_ : plain_).Change(page, ++uses_);
  return {Data(slot_of_[Index(page)]), checkpoint_bytes_};
}

std::span<std::byte> CheckpointStore::Add(PageId page) {
  CHECK(!Has(page)) << "page " << Index(page) << " has a checkpoint";
  if (free_.empty()) {
    const bool of_hinted = plain_.empty() || hinted_.size() > total_ / 2;
    Forget(of_hinted ? FirstHinted() : plain_.First());
    ++evictions_;
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  slot_of_[Index(page)] = slot;
  slots_[slot] = {.page = page};
  plain_.Add(page, ++uses_);
  ++added_;
  return {Data(slot), checkpoint_bytes_};
}

void CheckpointStore::Forget(PageId page) {
  const uint32_t slot = slot_of_[Index(page)];
  if (slot == kNone) return;
  (IsHinted(page) ? hinted_ : plain_).Remove(page);
  slot_of_[Index(page)] = kNone;
  free_.push_back(slot);
}

void CheckpointStore::SetHint(PageId page, std::optional<uint64_t> owner) {
  if (!Has(page)) return;
  if (owner) slots_[slot_of_[Index(page)]].owner = *owner;
  if (IsHinted(page) == owner.has_value()) return;
  PageHeap& from = owner ? plain_ : hinted_;
  (owner ? hinted_ : plain_).Add(page, from.KeyOf(page));
  from.Remove(page);
}

// Every slot is taken when this is asked.
PageId CheckpointStore::FirstHinted() {
  tallies_.clear();
  for (const Slot& slot : slots_) {
    if (!hinted_.Has(slot.page)) continue;
    auto tally = std::ranges::find(tallies_, slot.owner, &Tally::owner);
    if (tally == tallies_.end()) {
      tallies_.push_back({.owner = slot.owner, .count = 1, .oldest = slot.page});
      continue;
    }
    ++tally->count;
    if (hinted_.KeyOf(slot.page) < hinted_.KeyOf(tally->oldest)) tally->oldest = slot.page;
  }
  const auto most = std::ranges::max_element(tallies_, [this](const Tally& a, const Tally& b) {
    if (a.count != b.count) return a.count < b.count;
    return hinted_.KeyOf(a.oldest) > hinted_.KeyOf(b.oldest);
  });
  return most->oldest;
}

void CheckpointStore::CheckInvariants() const {
  CHECK(plain_.size() + hinted_.size() == stored()) << stored();
  std::vector<bool> taken(total_, false);
  for (const uint32_t slot : free_) taken[slot] = true;
  uint32_t pages = 0;
  for (size_t index = 0; index < slot_of_.size(); ++index) {
    const PageId page{static_cast<uint32_t>(index)};
    CHECK(Has(page) == (plain_.Has(page) != hinted_.Has(page))) << "page " << index;
    if (!Has(page)) continue;
    CHECK(!taken[slot_of_[index]]) << "slot " << slot_of_[index] << " is free or another page's";
    taken[slot_of_[index]] = true;
    CHECK(slots_[slot_of_[index]].page == page) << "page " << index << " is not its slot's";
    ++pages;
  }
  CHECK(pages == stored()) << pages << " of " << stored();
}

}  // namespace plumb::kvcache
