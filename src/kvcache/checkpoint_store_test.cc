// kvcache/checkpoint_store_test.cc
// A page has one checkpoint at most; the least recently used goes when there is no room.
#include "kvcache/checkpoint_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"

namespace plumb::kvcache {
namespace {

constexpr PageLayout kLayout{.page_tokens = 128, .page_bytes = 64, .checkpoint_bytes = 100};

std::unique_ptr<CheckpointStore> MakeStore(uint32_t pages, uint32_t slots) {
  return CheckpointStore::Create(kLayout, pages, slots).value();
}

void Fill(CheckpointStore& store, uint32_t page, int byte) {
  const auto room = store.Add(PageId{page});
  ASSERT_EQ(room.size(), kLayout.checkpoint_bytes);
  ASSERT_EQ(reinterpret_cast<uintptr_t>(room.data()) % CheckpointStore::kAlignment, 0u);
  std::memset(room.data(), byte, room.size());
}

bool Holds(CheckpointStore& store, uint32_t page, int byte) {
  const auto held = store.Use(PageId{page});
  return std::ranges::all_of(held, [&](std::byte b) { return b == static_cast<std::byte>(byte); });
}

TEST(CheckpointStore, KeepsWhatIsUsedAndLosesWhatIsNot) {
  const auto store = MakeStore(10, 3);
  EXPECT_EQ(store->total(), 3u);
  for (const uint32_t page : {4u, 7u, 2u}) Fill(*store, page, static_cast<int>(page));
  EXPECT_TRUE(Holds(*store, 4, 4));
  Fill(*store, 9, 9);  // 7 was used least recently
  EXPECT_FALSE(store->Has(PageId{7}));
  for (const uint32_t page : {2u, 4u, 9u}) EXPECT_TRUE(Holds(*store, page, static_cast<int>(page)));
  EXPECT_EQ(store->stored(), 3u);
  EXPECT_EQ(store->added(), 4u);
  EXPECT_EQ(store->evictions(), 1u);
  store->CheckInvariants();
}

TEST(CheckpointStore, OfPagesWithAHintItGoesLater) {
  const auto store = MakeStore(10, 4);
  for (const uint32_t page : {0u, 1u, 2u, 3u}) Fill(*store, page, static_cast<int>(page));
  store->SetHint(PageId{0}, 1);
  store->SetHint(PageId{1}, 1);
  store->SetHint(PageId{9}, 1);  // has none
  Fill(*store, 4, 4);
  Fill(*store, 5, 5);
  EXPECT_TRUE(Holds(*store, 0, 0) && Holds(*store, 1, 1));
  // Its place among the others is that of its last use.
  store->SetHint(PageId{0}, std::nullopt);
  Fill(*store, 6, 6);
  EXPECT_FALSE(store->Has(PageId{4}));
  EXPECT_TRUE(store->Has(PageId{0}));
  store->CheckInvariants();
}

TEST(CheckpointStore, HintsHoldHalfOfItAtMost) {
  const auto store = MakeStore(10, 4);
  for (const uint32_t page : {0u, 1u, 2u, 3u}) {
    Fill(*store, page, static_cast<int>(page));
    if (page != 1) store->SetHint(PageId{page}, 1);
  }
  Fill(*store, 4, 4);
  EXPECT_FALSE(store->Has(PageId{0})) << "of three with a hint the one used least recently";
  Fill(*store, 5, 5);
  EXPECT_FALSE(store->Has(PageId{1}));
  store->SetHint(PageId{4}, 1);
  store->SetHint(PageId{5}, 1);
  Fill(*store, 6, 6);
  EXPECT_FALSE(store->Has(PageId{2})) << "there are no others";
  store->CheckInvariants();
}

TEST(CheckpointStore, HintsOfOneOwnerDoNotPushOutThoseOfAnother) {
  const auto store = MakeStore(40, 8);
  for (const uint32_t page : {0u, 1u, 2u}) {
    Fill(*store, page, static_cast<int>(page));
    store->SetHint(PageId{page}, page == 2 ? 3 : 2);
  }
  for (uint32_t page = 3; page < 40; ++page) {
    Fill(*store, page, static_cast<int>(page));
    store->SetHint(PageId{page}, 1);
    store->CheckInvariants();
  }
  EXPECT_TRUE(Holds(*store, 0, 0) && Holds(*store, 1, 1) && Holds(*store, 2, 2));
  EXPECT_TRUE(store->Has(PageId{39}) && !store->Has(PageId{3}));
}

TEST(CheckpointStore, AForgottenPageMakesRoom) {
  const auto store = MakeStore(4, 2);
  Fill(*store, 0, 1);
  Fill(*store, 1, 2);
  store->Forget(PageId{0});
  store->Forget(PageId{0});
  store->Forget(PageId{3});  // has none
  EXPECT_EQ(store->stored(), 1u);
  Fill(*store, 0, 3);
  EXPECT_TRUE(Holds(*store, 0, 3));
  EXPECT_TRUE(Holds(*store, 1, 2));
  EXPECT_EQ(store->evictions(), 0u);
}

TEST(CheckpointStore, RefusesMemoryTheSystemDoesNotHave) {
  const PageLayout huge{
      .page_tokens = 128, .page_bytes = 64, .checkpoint_bytes = uint64_t{1} << 50};
  for (const uint32_t slots : {1u << 10, UINT32_MAX}) {
    const auto store = CheckpointStore::Create(huge, 1, slots);
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(store.status().field(), "checkpoints_max");
  }
}

struct Kept {
  uint32_t page = 0;
  int content = 0;
  std::optional<uint64_t> owner = std::nullopt;  // of its hint
};

// What the header promises, in the words of a full store by use.
std::vector<Kept>::iterator NextToGo(std::vector<Kept>& held, uint32_t slots) {
  const auto count = [&](const std::optional<uint64_t>& owner) {
    return std::ranges::count(held, owner, &Kept::owner);
  };
  const auto plain = count(std::nullopt);
  const auto hinted = static_cast<std::ptrdiff_t>(held.size()) - plain;
  if (plain > 0 && hinted <= slots / 2)
    return std::ranges::find_if(held, [](const Kept& one) { return !one.owner; });
  std::ptrdiff_t most = 0;
  for (const Kept& one : held) most = std::max(most, one.owner ? count(one.owner) : 0);
  return std::ranges::find_if(
      held, [&](const Kept& one) { return one.owner && count(one.owner) == most; });
}

TEST(CheckpointStore, AgreesWithAModelUnderRandomCalls) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    const auto pages = static_cast<uint32_t>(1 + rng.Below(20));
    const auto slots = static_cast<uint32_t>(1 + rng.Below(pages));
    const auto store = MakeStore(pages, slots);
    std::vector<Kept> held;  // by use
    for (int call = 0; call < 2000; ++call) {
      const auto page = static_cast<uint32_t>(rng.Below(pages));
      const auto place = std::ranges::find(held, page, &Kept::page);
      ASSERT_EQ(store->Has(PageId{page}), place != held.end());
      const uint64_t what = rng.Below(6);
      if (what == 0) {
        store->Forget(PageId{page});
        if (place != held.end()) held.erase(place);
      } else if (what <= 2) {
        const auto owner = rng.Below(3) == 0 ? std::nullopt : std::optional(rng.Below(3));
        store->SetHint(PageId{page}, owner);
        if (place != held.end()) place->owner = owner;
      } else if (place != held.end()) {
        ASSERT_TRUE(Holds(*store, page, place->content));
        std::rotate(place, place + 1, held.end());
      } else {
        if (held.size() == slots) held.erase(NextToGo(held, slots));
        held.push_back({.page = page, .content = static_cast<int>(rng.Below(256))});
        Fill(*store, page, held.back().content);
      }
      ASSERT_EQ(store->stored(), held.size());
      store->CheckInvariants();
    }
  }
}

TEST(CheckpointStoreDeathTest, StopsOnMisuse) {
  const auto store = MakeStore(4, 2);
  EXPECT_DEATH((void)store->Use(PageId{1}), "no checkpoint");
  Fill(*store, 1, 0);
  EXPECT_DEATH((void)store->Add(PageId{1}), "has a checkpoint");
}

}  // namespace
}  // namespace plumb::kvcache
