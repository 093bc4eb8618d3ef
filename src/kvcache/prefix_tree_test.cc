// kvcache/prefix_tree_test.cc
// Pages are found by name and by beginning, shared, and go oldest first, children before parents.
// Names are made up here: the tree takes whatever it is given. With hints: prefix_hints_test.cc.
#include "kvcache/prefix_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/random.h"
#include "kvcache/page_chain.h"
#include "kvcache/prefix_tree_testing.h"

namespace plumb::kvcache {
namespace {

using base::Hash256;

TEST_F(PrefixTreeTest, FindsASealedPageByItsWholeName) {
  Make(8);
  const PageId page = *pool_->Allocate();
  Hash256 name = Root(9), other = name;
  other.bytes[31] = 1;  // the first 31 bytes collide
  EXPECT_EQ(tree_->Seal(page, {{}, Root(0), Tokens("aaaa")}, name), page);
  EXPECT_EQ(tree_->Find(name), page);
  EXPECT_EQ(name.prefix(), other.prefix());
  EXPECT_FALSE(tree_->Find(other));
  // Both live beside each other, and going is told apart too.
  const PageId second = *pool_->Allocate();
  EXPECT_EQ(tree_->Seal(second, {{}, Root(0), Tokens("bbbb")}, other), second);
  EXPECT_EQ(tree_->Find(name), page);
  EXPECT_EQ(tree_->Find(other), second);
  tree_->Release(page);
  tree_->Release(second);
  tree_->CheckInvariants();
  tree_->Evict(1);
  EXPECT_FALSE(tree_->Find(name));
  EXPECT_EQ(tree_->Find(other), second);
}

TEST_F(PrefixTreeTest, TheSameContentIsStoredOnce) {
  Make(8);
  User first = Use("aaaabbbbcc"), second = Use("aaaabbbbdd");
  EXPECT_EQ(first.pages[0], second.pages[0]);
  EXPECT_EQ(first.pages[1], second.pages[1]);
  EXPECT_NE(first.pages[2], second.pages[2]);
  EXPECT_EQ(pool_->references(first.pages[1]), 3u);  // two users and the tree
  EXPECT_EQ(tree_->stored(), 2u);
  EXPECT_EQ(pool_->free(), 4u);
  Leave(first);
  EXPECT_EQ(tree_->idle(), 1u);  // its tail
  Leave(second);
  EXPECT_EQ(tree_->idle(), 4u);
}

TEST_F(PrefixTreeTest, TenantsDoNotMeet) {
  Make(8);
  User first = Use("aaaabb", 1), second = Use("aaaabb", 2);
  EXPECT_NE(first.pages[0], second.pages[0]);
  Leave(first);
  Leave(second);
  EXPECT_TRUE(Holds("aaaa", 1));
  EXPECT_FALSE(Holds("aaaa", 3));
  EXPECT_EQ(Common("aaaz", 1), 3u);
  EXPECT_EQ(Common("aaaz", 3), 0u);
}

TEST_F(PrefixTreeTest, FindsTheLongestCommonBeginningAmongSiblings) {
  Make(16);
  for (const char* text : {"abcd", "abxx", "b", "ba", "zz", "bazz"}) Once(text);
  EXPECT_EQ(Common("abce"), 3u);
  EXPECT_EQ(Common("abxy"), 3u);
  EXPECT_EQ(Common("ab"), 2u);
  EXPECT_EQ(Common("a"), 1u);
  EXPECT_EQ(Common("bazy"), 3u);
  EXPECT_EQ(Common("zzzz"), 2u);
  EXPECT_EQ(Common("c"), 0u);
  EXPECT_EQ(Common(""), 0u);
}

TEST_F(PrefixTreeTest, ATailWithinAnotherPageIsNotKept) {
  Make(16);
  Once("ab");
  EXPECT_EQ(tree_->stored(), 1u);
  Once("a");  // nothing new
  EXPECT_EQ(tree_->stored(), 1u);
  Once("abc");  // takes the place of "ab"
  EXPECT_EQ(tree_->stored(), 1u);
  EXPECT_EQ(Common("abcz"), 3u);
  Once("abcd");
  EXPECT_EQ(tree_->stored(), 1u);
  Once("abc");
  EXPECT_EQ(tree_->stored(), 1u);
  EXPECT_EQ(pool_->free(), 15u);
}

TEST_F(PrefixTreeTest, EvictsTheOldestUseFirstAndChildrenBeforeParents) {
  Make(16);
  Once("aaaabbbb");
  Once("cccc");
  Once("aaaadddd");  // uses "aaaa" again
  tree_->Evict(1);
  EXPECT_FALSE(Holds("aaaabbbb"));
  EXPECT_TRUE(Holds("aaaa"));
  tree_->Evict(1);
  EXPECT_FALSE(Holds("cccc"));
  tree_->Evict(1);
  EXPECT_FALSE(Holds("aaaadddd"));
  EXPECT_TRUE(Holds("aaaa"));
  tree_->CheckInvariants();
  tree_->Evict(1);
  EXPECT_EQ(tree_->stored(), 0u);
  EXPECT_EQ(tree_->evictions(), 4u);
  EXPECT_EQ(pool_->free(), 16u);
}

TEST_F(PrefixTreeTest, WhatIsInUseIsNotEvicted) {
  Make(16);
  Once("aaaabbbbcccc");
  User user = Use("aaaabbbb");
  EXPECT_EQ(tree_->idle(), 1u);
  tree_->Evict(1);
  EXPECT_FALSE(Holds("aaaabbbbcccc"));
  EXPECT_TRUE(Holds("aaaabbbb"));
  Leave(user);
}

TEST_F(PrefixTreeTest, APageThatGoesTakesItsCheckpointWithIt) {
  constexpr PageLayout kWithCheckpoints{
      .page_tokens = kPageTokens, .page_bytes = 64, .checkpoint_bytes = 8};
  pool_ = PagePool::Create(kWithCheckpoints, 8 * PagePool::kAlignment).value();
  const auto checkpoints = CheckpointStore::Create(kWithCheckpoints, 8, 8).value();
  tree_ = std::make_unique<PrefixTree>(*pool_, checkpoints.get());
  User user = Use("aaaabbbbcc");
  for (size_t place = 0; place < 2; ++place) (void)checkpoints->Add(user.pages[place]);
  const PageId first = user.pages[0], second = user.pages[1];
  Leave(user);
  tree_->Evict(1);  // the tail
  EXPECT_EQ(checkpoints->stored(), 2u);
  tree_->Evict(1);
  EXPECT_TRUE(checkpoints->Has(first));
  EXPECT_FALSE(checkpoints->Has(second));
  // The place is another page's now, which has none.
  User other = Use("dddd");
  EXPECT_FALSE(checkpoints->Has(other.pages[0]));
  Leave(other);
  tree_.reset();
  EXPECT_EQ(checkpoints->stored(), 0u);
}

TEST_F(PrefixTreeTest, AgreesWithAModelUnderRandomUse) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    Make(static_cast<uint32_t>(12 + rng.Below(30)));
    std::vector<User> users;
    std::map<PageId, std::string> content;  // of sealed pages, all of it from the root
    for (int call = 0; call < 3000; ++call) {
      const uint32_t available = pool_->free() + tree_->idle();
      if (users.size() < 4 && available >= 4 && rng.Below(2) == 0) {
        std::string text;
        for (uint64_t length = 1 + rng.Below(15); length > 0; --length) {
          text += static_cast<char>('a' + rng.Below(2));
        }
        const uint8_t tenant = static_cast<uint8_t>(rng.Below(2));
        users.push_back(Use(text, tenant));
        const User& user = users.back();
        for (size_t i = 0; i < text.size() / kPageTokens; ++i) {
          content[user.pages[i]] = std::to_string(tenant) + text.substr(0, (i + 1) * kPageTokens);
        }
      } else if (!users.empty() && rng.Below(2) == 0) {
        const size_t index = rng.Below(users.size());
        Leave(users[index], rng.Below(2) == 0);
        users.erase(users.begin() + static_cast<ptrdiff_t>(index));
      } else if (tree_->idle() > 0 && rng.Below(4) == 0) {
        tree_->Evict(static_cast<uint32_t>(1 + rng.Below(tree_->idle())));
      }
      tree_->CheckInvariants();
      std::map<PageId, uint32_t> counts;
      for (const User& user : users) {
        for (size_t i = 0; i < user.pages.size(); ++i) {
          ++counts[user.pages[i]];
          if (i >= user.text.size() / kPageTokens) continue;
          // Nobody's page was given to another content meanwhile.
          ASSERT_EQ(content[user.pages[i]], std::to_string(user.root.bytes[0]) +
                                                user.text.substr(0, (i + 1) * kPageTokens));
        }
      }
      for (uint32_t page = 0; page < pool_->total(); ++page) {
        const PageId id{page};
        ASSERT_EQ(pool_->references(id), counts[id] + tree_->IsStored(id)) << "page " << page;
      }
    }
    for (User& user : users) Leave(user);
    tree_.reset();
    EXPECT_EQ(pool_->free(), pool_->total());
  }
}

TEST_F(PrefixTreeTest, CollidingSlotsSurviveRemovalInAnyOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    base::Rng rng(seed);
    Make(16);
    // Equal prefixes: all sixteen start at one slot.
    std::vector<std::pair<PageId, Hash256>> held;
    for (uint8_t i = 0; i < 16; ++i) {
      Hash256 name = Root(1);
      name.bytes[20] = i;
      const PageId page = *pool_->Allocate();
      held.emplace_back(page, name);
      tree_->Seal(page, {{}, Root(0), Tokens(std::string(4, static_cast<char>('a' + i)))}, name);
    }
    while (!held.empty()) {
      const size_t index = rng.Below(held.size());
      tree_->Release(held[index].first);
      tree_->Evict(1);
      EXPECT_FALSE(tree_->Find(held[index].second));
      held.erase(held.begin() + static_cast<ptrdiff_t>(index));
      for (const auto& [page, name] : held) ASSERT_EQ(tree_->Find(name), page);
      tree_->CheckInvariants();
    }
  }
}

using PrefixTreeDeathTest = PrefixTreeTest;

TEST_F(PrefixTreeDeathTest, StopsOnMisuse) {
  Make(4);
  User user = Use("aaaa");
  EXPECT_DEATH(tree_->Evict(1), "1 of 0");
  EXPECT_DEATH((void)tree_->Seal(user.pages[0], {{}, Root(5), Tokens("bbbb")}, Root(6)),
               "sealed twice");
  EXPECT_DEATH(tree_.reset(), "in use");
  const PageId page = *pool_->Allocate();
  EXPECT_DEATH((void)tree_->Seal(page, {user.pages[0], Root(3), Tokens("bbbb")}, Root(6)),
               "not the page before");
  EXPECT_DEATH(tree_->Retain(page), "not stored");
  tree_->Release(page);
  tree_->Release(user.pages[0]);
  EXPECT_DEATH(tree_->Release(user.pages[0]), "no users");
}

}  // namespace
}  // namespace plumb::kvcache
