// kvcache/page_pool_test.cc
// Pages are given out once, come back once, and never overlap.
#include "kvcache/page_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/random.h"

namespace plumb::kvcache {
namespace {

constexpr PageLayout kLayout{.page_tokens = 128, .page_bytes = 5000};
constexpr uint64_t kStride = 8192;  // 5000 rounded up to whole 4096

std::unique_ptr<PagePool> MakePool(uint32_t pages) {
  auto pool = PagePool::Create(kLayout, pages * kStride + kStride / 2);
  return std::move(pool).value();
}

TEST(PagePool, HoldsAsManyPagesAsTheBudgetPays) {
  EXPECT_EQ(MakePool(7)->total(), 7u);
  EXPECT_EQ(MakePool(7)->free(), 7u);
}

TEST(PagePool, RefusesABudgetBelowOnePage) {
  const auto pool = PagePool::Create(kLayout, kStride - 1);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().code(), base::Code::kInvalidArgument);
  EXPECT_EQ(pool.status().field(), "kv_budget_bytes");
}

TEST(PagePool, RefusesMorePagesThanAnIdCounts) {
  const auto pool = PagePool::Create({.page_tokens = 1, .page_bytes = 1}, UINT64_MAX);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().code(), base::Code::kInvalidArgument);
}

TEST(PagePool, RefusesMemoryTheSystemDoesNotHave) {
  // 2^59 bytes are more than an address space of 47 or 56 bits.
  const auto pool =
      PagePool::Create({.page_tokens = 128, .page_bytes = uint64_t{1} << 40}, uint64_t{1} << 59);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().field(), "kv_budget_bytes");
}

TEST(PagePool, GivesNothingWhenAllArePutToUse) {
  auto pool = MakePool(2);
  const auto first = pool->Allocate(), second = pool->Allocate();
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(pool->Allocate());
  pool->Release(*first);
  EXPECT_EQ(pool->Allocate(), first);
  pool->Release(*first);
  pool->Release(*second);
}

TEST(PagePool, FreesAPageWithItsLastReference) {
  auto pool = MakePool(1);
  const PageId page = *pool->Allocate();
  pool->Retain(page);
  EXPECT_EQ(pool->references(page), 2u);
  pool->Release(page);
  EXPECT_EQ(pool->free(), 0u);
  pool->Release(page);
  EXPECT_EQ(pool->free(), 1u);
}

TEST(PagePool, PagesAreAlignedAndDoNotOverlap) {
  auto pool = MakePool(9);
  std::vector<PageId> pages;
  while (const auto page = pool->Allocate()) pages.push_back(*page);
  for (const PageId page : pages) {
    const auto data = pool->Data(page);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data.data()) % PagePool::kAlignment, 0u);
    ASSERT_EQ(data.size(), kLayout.page_bytes);
    std::memset(data.data(), static_cast<int>(Index(page)) + 1, data.size());
  }
  for (const PageId page : pages) {
    for (const std::byte byte : pool->Data(page)) {
      ASSERT_EQ(static_cast<uint32_t>(byte), Index(page) + 1);
    }
    pool->Release(page);
  }
}

TEST(PagePool, CountsAgreeWithAModelUnderRandomCalls) {
  constexpr uint64_t kSeed = 7;
  base::Rng rng(kSeed);
  auto pool = MakePool(16);
  std::vector<PageId> held;  // one entry for each reference
  for (int call = 0; call < 20000; ++call) {
    const uint64_t choice = rng.Below(3);
    if (choice == 0) {
      const auto page = pool->Allocate();
      ASSERT_EQ(page.has_value(), std::set(held.begin(), held.end()).size() < 16);
      if (page) held.push_back(*page);
    } else if (!held.empty()) {
      const size_t index = rng.Below(held.size());
      if (choice == 1 && held.size() < 64) {
        pool->Retain(held[index]);
        held.push_back(held[index]);
      } else {
        pool->Release(held[index]);
        held.erase(held.begin() + static_cast<ptrdiff_t>(index));
      }
    }
    ASSERT_EQ(pool->free() + std::set(held.begin(), held.end()).size(), pool->total());
  }
  for (const PageId page : held) pool->Release(page);
  EXPECT_EQ(pool->free(), pool->total());
}

TEST(PagePoolDeathTest, StopsOnADoubleFree) {
  auto pool = MakePool(1);
  const PageId page = *pool->Allocate();
  pool->Release(page);
  EXPECT_DEATH(pool->Release(page), "freed twice");
  EXPECT_DEATH((void)pool->Data(page), "is free");
  EXPECT_DEATH(pool->Retain(page), "is free");
}

TEST(PagePoolDeathTest, StopsWhenDestroyedWithPagesInUse) {
  EXPECT_DEATH(
      {
        auto pool = MakePool(1);
        (void)pool->Allocate();
        pool.reset();
      },
      "still referred to");
}

}  // namespace
}  // namespace plumb::kvcache
