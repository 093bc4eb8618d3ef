// kvcache/page_heap.cc
// Sift up, sift down, and the place of each page kept beside.
#include "kvcache/page_heap.h"

#include "base/check.h"

namespace plumb::kvcache {

PageHeap::PageHeap(uint32_t pages) : places_(pages, kNowhere) { heap_.reserve(pages); }

uint64_t PageHeap::KeyOf(PageId page) const {
  CHECK(Has(page)) << "page " << Index(page) << " is not in the heap";
  return heap_[places_[Index(page)]].key;
}

PageId PageHeap::First() const {
  CHECK(!heap_.empty()) << "the first of no pages";
  return heap_.front().page;
}

void PageHeap::Add(PageId page, uint64_t key) {
  CHECK(!Has(page)) << "page " << Index(page) << " is in the heap";
  heap_.push_back({key, page});
  Put(size() - 1, heap_.back());
  Settle(size() - 1);
}

void PageHeap::Change(PageId page, uint64_t key) {
  CHECK(Has(page)) << "page " << Index(page) << " is not in the heap";
  heap_[places_[Index(page)]].key = key;
  Settle(places_[Index(page)]);
}

void PageHeap::Remove(PageId page) {
  CHECK(Has(page)) << "page " << Index(page) << " is not in the heap";
  const uint32_t place = places_[Index(page)];
  places_[Index(page)] = kNowhere;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  Put(place, last);
  Settle(place);
}

void PageHeap::Put(uint32_t place, const Entry& entry) {
  heap_[place] = entry;
  places_[Index(entry.page)] = place;
}

void PageHeap::Settle(uint32_t place) {
  const Entry entry = heap_[place];
  for (; place > 0 && entry.key < heap_[(place - 1) / 2].key; place = (place - 1) / 2) {
    Put(place, heap_[(place - 1) / 2]);
  }
  for (;;) {
    uint32_t child = 2 * place + 1;
    if (child >= size()) break;
    if (child + 1 < size() && heap_[child + 1].key < heap_[child].key) ++child;
    if (heap_[child].key >= entry.key) break;
    Put(place, heap_[child]);
    place = child;
  }
  Put(place, entry);
}

}  // namespace plumb::kvcache
