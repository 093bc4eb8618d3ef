// kvcache/page_heap_test.cc
// The least key first, whatever was added, changed and removed before: against an ordered set.
#include "kvcache/page_heap.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "base/random.h"

namespace plumb::kvcache {
namespace {

TEST(PageHeap, GivesTheLeastKeyUnderRandomUse) {
  constexpr uint32_t kPages = 40;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    PageHeap heap(kPages);
    std::set<std::pair<uint64_t, uint32_t>> expected;
    for (int call = 0; call < 2000; ++call) {
      const PageId page{static_cast<uint32_t>(rng.Below(kPages))};
      const uint64_t key = rng.Below(30);  // often equal
      if (!heap.Has(page)) {
        heap.Add(page, key);
        expected.emplace(key, Index(page));
      } else {
        ASSERT_EQ(expected.erase({heap.KeyOf(page), Index(page)}), 1u);
        if (rng.Below(2) == 0) {
          heap.Remove(page);
        } else {
          heap.Change(page, key);
          expected.emplace(key, Index(page));
        }
      }
      ASSERT_EQ(heap.size(), expected.size());
      ASSERT_EQ(heap.empty(), expected.empty());
      if (expected.empty()) continue;
      ASSERT_EQ(heap.KeyOf(heap.First()), expected.begin()->first);
    }
    for (; !heap.empty(); heap.Remove(heap.First())) {
      ASSERT_EQ(heap.KeyOf(heap.First()), expected.begin()->first);
      expected.erase({heap.KeyOf(heap.First()), Index(heap.First())});
    }
  }
}

TEST(PageHeapDeathTest, StopsOnMisuse) {
  PageHeap heap(2);
  EXPECT_DEATH((void)heap.First(), "no pages");
  EXPECT_DEATH(heap.Remove(PageId{0}), "not in the heap");
  EXPECT_DEATH(heap.Change(PageId{0}, 1), "not in the heap");
  heap.Add(PageId{0}, 1);
  EXPECT_DEATH(heap.Add(PageId{0}, 2), "is in the heap");
}

}  // namespace
}  // namespace plumb::kvcache
