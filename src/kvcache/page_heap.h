// kvcache/page_heap.h
// Pages in order of a number that each has, the least first, where any of them can go or change its
// number: a binary heap that knows where each page stands. Sized at the start; no call allocates.
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "kvcache/page_pool.h"

namespace plumb::kvcache {

// Every call but First takes O(log size). Of equal keys, which is first follows from the calls.
class PageHeap {
 public:
  // For pages below `pages`.
  explicit PageHeap(uint32_t pages);

  bool Has(PageId page) const { return places_[Index(page)] != kNowhere; }
  bool empty() const { return heap_.empty(); }
  uint32_t size() const { return static_cast<uint32_t>(heap_.size()); }
  // Of a page that is here (CHECK).
  uint64_t KeyOf(PageId page) const;
  // The page with the least key; there must be one (CHECK).
  PageId First() const;

  void Add(PageId page, uint64_t key);     // not here yet (CHECK)
  void Change(PageId page, uint64_t key);  // here (CHECK)
  void Remove(PageId page);                // here (CHECK)

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  struct Entry {
    uint64_t key;
    PageId page;
  };

  void Put(uint32_t place, const Entry& entry);
  // Moves the entry from there to where its key belongs.
  void Settle(uint32_t place);

  std::vector<Entry> heap_;       // an entry's key is not below that of (place - 1) / 2
  std::vector<uint32_t> places_;  // [pages] in heap_, or kNowhere
};

}  // namespace plumb::kvcache
