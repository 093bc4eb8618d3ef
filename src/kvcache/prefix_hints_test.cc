// kvcache/prefix_hints_test.cc
// Hints: pages without a live one go first, hints end with their time, never hold a page that is
// needed, and neither they nor an owner have the pool to themselves. At the end all of it under
// random use, against the policy written down as plainly as it can be.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "kvcache/prefix_tree_testing.h"

namespace plumb::kvcache {
namespace {

using base::Duration;
using base::Instant;

class PrefixHintsTest : public PrefixTreeTest {
 protected:
  // As the engine does: from the end, and to all pages from the first one on.
  void LeaveWithHint(User& user, Duration time, uint64_t owner = 0) {
    for (size_t place = user.pages.size(); place-- > 0;) {
      tree_->Hint(user.pages[place], {.owner = owner, .time = time});
      tree_->Release(user.pages[place]);
    }
    user.pages.clear();
    tree_->CheckInvariants();
  }
  void OnceWithHint(const std::string& text, Duration time, uint8_t owner = 0) {
    User user = Use(text, owner);
    LeaveWithHint(user, time, owner);
  }
};

TEST_F(PrefixHintsTest, PagesWithoutAHintGoFirst) {
  Make(16);
  OnceWithHint("aaaabbbb", {10});
  Once("ccccdddd");  // used later
  tree_->Evict(2);
  EXPECT_FALSE(Holds("cccc"));
  EXPECT_TRUE(Holds("aaaabbbb"));
  EXPECT_EQ(tree_->hinted_evictions(), 0u);
  // A hint pins nothing.
  tree_->Evict(1);
  EXPECT_FALSE(Holds("aaaabbbb"));
  EXPECT_TRUE(Holds("aaaa"));
  tree_->Evict(1);
  EXPECT_EQ(tree_->hinted_evictions(), 2u);
  EXPECT_EQ(tree_->hints().count(), 0u);
}

TEST_F(PrefixHintsTest, AHintThatHasEndedIsAsIfNeverGiven) {
  Make(16);
  OnceWithHint("aaaabbbb", {10});
  Once("cccc");
  tree_->SetTime({9});
  EXPECT_EQ(tree_->hints().count(), 2u);
  tree_->SetTime({10});
  EXPECT_EQ(tree_->hints().count(), 0u);
  tree_->CheckInvariants();
  tree_->Evict(2);  // the oldest use again
  EXPECT_FALSE(Holds("aaaa"));
  EXPECT_TRUE(Holds("cccc"));
}

TEST_F(PrefixHintsTest, TimeRunsFromTheLastUseByAnybody) {
  Make(16);
  OnceWithHint("aaaabbbb", {10});
  tree_->SetTime({8});
  Once("aaaa");  // without a hint of its own
  tree_->SetTime({12});
  EXPECT_EQ(tree_->hints().count(), 1u) << "its child was not used";
  tree_->CheckInvariants();
  tree_->SetTime({18});
  EXPECT_EQ(tree_->hints().count(), 0u);
}

TEST_F(PrefixHintsTest, OfTwoTimesTheLongerHolds) {
  Make(16);
  OnceWithHint("aaaa", {100});
  OnceWithHint("aaaa", {10});
  tree_->SetTime({50});
  EXPECT_EQ(tree_->hints().count(), 1u);
  OnceWithHint("aaaa", {200});
  tree_->SetTime({249});
  EXPECT_EQ(tree_->hints().count(), 1u);
  tree_->SetTime({250});
  EXPECT_EQ(tree_->hints().count(), 0u);
}

TEST_F(PrefixHintsTest, AParentIsKeptAsLongAsItsChild) {
  Make(16);
  User parent = Use("aaaa");
  OnceWithHint("aaaabbbb", {10});
  tree_->SetTime({8});
  OnceWithHint("aaaabbbb", {10});
  tree_->SetTime({15});
  EXPECT_EQ(tree_->hints().count(), 2u);
  Leave(parent);
  Once("cccc");
  tree_->Evict(1);
  EXPECT_TRUE(Holds("aaaabbbb"));
}

// Else the child would stay behind when its parent's hint ends in use.
TEST_F(PrefixHintsTest, ACopyOfAPageIsNoUseOfIt) {
  Make(16);
  OnceWithHint("aaaabbbb", {10});
  User parent = Use("aaaa");
  tree_->SetTime({8});
  const PageId child = tree_->FindPrefix(ChainNext(Root(0), Tokens("aaaa")), Tokens("bbbb")).page;
  tree_->Retain(child);
  tree_->ReleaseCopied(child);
  tree_->CheckInvariants();
  tree_->SetTime({12});
  EXPECT_EQ(tree_->hints().count(), 0u);
  tree_->CheckInvariants();
  Leave(parent);
}

TEST_F(PrefixHintsTest, HalfOfThePagesAtMostAndAQuarterForOneOwner) {
  Make(16);
  for (const char* text : {"aaaa", "bbbb", "cccc", "dddd", "eeee"}) OnceWithHint(text, {10}, 1);
  EXPECT_EQ(tree_->hints().count(), 4u);
  EXPECT_EQ(tree_->hints().CountOf(1), 4u);
  // Its own that was used least recently has made room.
  tree_->Evict(1);
  EXPECT_FALSE(Holds("aaaa", 1));
  for (const char* text : {"aaaa", "bbbb", "cccc", "dddd"}) OnceWithHint(text, {10}, 2);
  EXPECT_EQ(tree_->hints().count(), 8u);
  // Two have as many: of both the least recently used.
  OnceWithHint("aaaa", {10}, 3);
  EXPECT_EQ(tree_->hints().count(), 8u);
  EXPECT_EQ(tree_->hints().CountOf(1), 3u);
  EXPECT_EQ(tree_->hints().CountOf(2), 4u);
  tree_->Evict(1);
  EXPECT_FALSE(Holds("bbbb", 1));
}

TEST_F(PrefixHintsTest, TwoOwnersTogetherDoNotPushOutAThird) {
  Make(16);
  OnceWithHint("aaaa", {10}, 3);
  for (int round = 0; round < 3; ++round) {
    for (const char* text : {"aaaa", "bbbb", "cccc", "dddd", "eeee"}) {
      OnceWithHint(text, {10}, 1);
      OnceWithHint(text, {10}, 2);
    }
  }
  EXPECT_EQ(tree_->hints().CountOf(3), 1u);
  EXPECT_TRUE(Holds("aaaa", 3));
}

TEST_F(PrefixHintsTest, OfALongPromptTheBeginningIsKept) {
  Make(16);
  OnceWithHint("aaaabbbbccccddddeeeeffff", {10});
  EXPECT_EQ(tree_->hints().count(), 4u);
  OnceWithHint("aaaabbbbccccddddeeeeffff", {10});
  tree_->Evict(2);
  EXPECT_TRUE(Holds("aaaabbbbccccdddd"));
  EXPECT_FALSE(Holds("aaaabbbbccccddddeeee"));
}

TEST_F(PrefixHintsTest, APoolTooSmallKeepsNothing) {
  Make(1);
  OnceWithHint("aaaa", {10});
  EXPECT_EQ(tree_->hints().count(), 0u);
  tree_->Evict(1);
  EXPECT_FALSE(Holds("aaaa"));
}

TEST_F(PrefixHintsTest, CheckpointsGoWithTheirPagesHints) {
  constexpr PageLayout kWithCheckpoints{
      .page_tokens = kPageTokens, .page_bytes = 64, .checkpoint_bytes = 8};
  pool_ = PagePool::Create(kWithCheckpoints, 16 * PagePool::kAlignment).value();
  const auto checkpoints = CheckpointStore::Create(kWithCheckpoints, 16, 4).value();
  tree_ = std::make_unique<PrefixTree>(*pool_, checkpoints.get());
  const auto once = [&](const std::string& text, Duration time) {
    User user = Use(text);
    const PageId page = user.pages.back();
    if (!checkpoints->Has(page)) (void)checkpoints->Add(page);
    time.ns > 0 ? LeaveWithHint(user, time) : Leave(user);
    return page;
  };
  const PageId kept = once("aaaa", {10});
  for (const char* text : {"bbbb", "cccc", "dddd", "eeee", "ffff"}) once(text, {0});
  EXPECT_TRUE(checkpoints->Has(kept));
  tree_->SetTime({10});
  for (const char* text : {"gggg", "hhhh", "iiii", "jjjj"}) once(text, {0});
  EXPECT_FALSE(checkpoints->Has(kept));
  tree_.reset();
}

// The policy: who goes, who has a hint and how long, by looking at all pages each time.
class Policy {
 public:
  explicit Policy(uint32_t pages) : pages_(pages) {}

  struct Page {
    uint32_t users = 0;
    bool stored = false;
    uint64_t used = 0;  // when it became idle, in calls
    bool hinted = false;
    PageHint hint;
    Instant end;
    uint64_t hint_used = 0;
  };

  void Use(PageId page) {
    at(page).stored = true;
    ++at(page).users;
  }
  void Release(PageId page) {
    Page& one = at(page);
    if (one.hinted) Renew(one);
    if (--one.users == 0) one.used = ++calls_;
  }
  void Hint(PageId page, const PageHint& hint) {
    Page& one = at(page);
    if (one.hinted) {
      one.hint.time = std::max(one.hint.time, hint.time);
      return Renew(one);
    }
    const uint32_t all_max = static_cast<uint32_t>(pages_.size()) / 2;
    if (all_max == 0) return;
    const bool full = CountOf(hint.owner) == (all_max + 1) / 2;
    uint32_t most = 0;
    for (const Page& other : pages_)
      if (other.hinted) most = std::max(most, CountOf(other.hint.owner));
    Page* oldest = nullptr;
    for (Page& other : pages_) {
      if (!other.hinted || (full && other.hint.owner != hint.owner)) continue;
      if (!full && CountOf(other.hint.owner) < most) continue;
      if (oldest == nullptr || other.hint_used < oldest->hint_used) oldest = &other;
    }
    if (full || Count() == all_max) oldest->hinted = false;
    one.hinted = true;
    one.hint = hint;
    Renew(one);
  }
  void SetTime(Instant now) {
    now_ = now;
    for (Page& page : pages_) page.hinted = page.hinted && page.end > now;
  }
  PageId Evict() {
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < pages_.size(); ++i) {
      const Page& page = pages_[i];
      if (!page.stored || page.users > 0) continue;
      if (first == UINT32_MAX ||
          std::pair(page.hinted, page.used) < std::pair(pages_[first].hinted, pages_[first].used)) {
        first = i;
      }
    }
    CHECK(first != UINT32_MAX);
    pages_[first] = Page();
    return PageId{first};
  }
  Page& at(PageId page) { return pages_[Index(page)]; }
  uint32_t Count() const {
    return static_cast<uint32_t>(std::ranges::count(pages_, true, &Page::hinted));
  }
  uint32_t CountOf(uint64_t owner) const {
    return static_cast<uint32_t>(std::ranges::count_if(
        pages_, [&](const Page& page) { return page.hinted && page.hint.owner == owner; }));
  }

 private:
  void Renew(Page& page) {
    page.end = now_ + page.hint.time;
    page.hint_used = ++calls_;
  }

  std::vector<Page> pages_;
  Instant now_{0};
  uint64_t calls_ = 0;
};

class RandomHints : public PrefixHintsTest {
 protected:
  void EvictOne() {
    const PageId expected = policy_->Evict();
    const uint32_t stored = tree_->stored();
    tree_->Evict(1);
    ASSERT_FALSE(tree_->IsStored(expected)) << "page " << Index(expected) << " should have gone";
    ASSERT_EQ(tree_->stored(), stored - 1);
  }

  // Whole pages alone.
  void Arrive(base::Rng& rng) {
    std::string text;
    for (uint64_t pages = 1 + rng.Below(5); pages > 0; --pages) {
      text.append(kPageTokens, static_cast<char>('a' + rng.Below(3)));
    }
    const auto owner = static_cast<uint8_t>(rng.Below(3));
    User user{.pages = {}, .text = text, .root = Root(owner)};
    base::Hash256 chain = user.root;
    for (size_t begin = 0; begin < text.size(); begin += kPageTokens) {
      const std::vector<base::TokenId> tokens = Tokens(text.substr(begin, kPageTokens));
      const base::Hash256 name = ChainNext(chain, tokens);
      const auto parent = user.pages.empty() ? std::nullopt : std::optional(user.pages.back());
      if (const auto stored = tree_->Find(name)) {
        tree_->Retain(*stored);
        user.pages.push_back(*stored);
      } else {
        if (pool_->free() == 0) EvictOne();
        user.pages.push_back(tree_->Seal(pool_->Allocate().value(), {parent, chain, tokens}, name));
      }
      policy_->Use(user.pages.back());
      chain = name;
    }
    users_.push_back(std::move(user));
  }

  // With hints for a beginning of its pages, or for two: the nearer one longer.
  void Depart(base::Rng& rng) {
    const size_t index = rng.Below(users_.size());
    User& user = users_[index];
    const std::array times{Duration{10}, Duration{60}, Duration{300}};
    const size_t far = rng.Below(user.pages.size() + 1), near = rng.Below(far + 1);
    const size_t shorter = rng.Below(times.size());
    const size_t longer = shorter + rng.Below(times.size() - shorter);
    for (size_t place = user.pages.size(); place-- > 0;) {
      const PageId page = user.pages[place];
      if (place < far) {
        const PageHint hint{.owner = user.root.bytes[0],
                            .time = times[place < near ? longer : shorter]};
        tree_->Hint(page, hint);
        policy_->Hint(page, hint);
      }
      tree_->Release(page);
      policy_->Release(page);
    }
    users_.erase(users_.begin() + static_cast<ptrdiff_t>(index));
  }

  void ExpectThePolicysState() {
    tree_->CheckInvariants();
    const PageHints& hints = tree_->hints();
    for (uint32_t i = 0; i < pool_->total(); ++i) {
      const PageId page{i};
      const Policy::Page& expected = policy_->at(page);
      ASSERT_EQ(tree_->IsStored(page), expected.stored) << "page " << i;
      ASSERT_EQ(hints.Has(page), expected.hinted) << "page " << i;
      ASSERT_TRUE(!expected.hinted || hints.EndOf(page) == expected.end) << "page " << i;
    }
    ASSERT_LE(hints.count(), pool_->total() / 2);
    for (uint64_t owner = 0; owner < 3; ++owner) {
      ASSERT_EQ(hints.CountOf(owner), policy_->CountOf(owner));
      ASSERT_LE(hints.CountOf(owner), (pool_->total() / 2 + 1) / 2);
    }
  }

  std::unique_ptr<Policy> policy_;
  std::vector<User> users_;
};

TEST_F(RandomHints, FollowThePolicy) {
  uint64_t hinted_evictions = 0, most = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Rng rng(seed);
    Make(static_cast<uint32_t>(10 + rng.Below(30)));
    policy_ = std::make_unique<Policy>(pool_->total());
    Instant now{0};
    for (int call = 0; call < 1500; ++call) {
      const uint32_t available = pool_->free() + tree_->idle();
      const uint64_t drawn = rng.Below(10);
      if (drawn < 4 && available >= 5 && users_.size() < 5) {
        ASSERT_NO_FATAL_FAILURE(Arrive(rng));
      } else if (drawn < 8 && !users_.empty()) {
        Depart(rng);
      } else if (drawn == 8) {
        now = now + Duration{static_cast<int64_t>(rng.Below(20))};
        tree_->SetTime(now);
        policy_->SetTime(now);
      } else if (tree_->idle() > 0) {
        ASSERT_NO_FATAL_FAILURE(EvictOne());
      }
      ASSERT_NO_FATAL_FAILURE(ExpectThePolicysState());
      most = std::max<uint64_t>(most, tree_->hints().count());
    }
    hinted_evictions += tree_->hinted_evictions();
    while (!users_.empty()) Depart(rng);
    tree_.reset();
    EXPECT_EQ(pool_->free(), pool_->total());
  }
  // They do reach what they are for.
  EXPECT_GT(hinted_evictions, 100u);
  EXPECT_GT(most, 10u);
}

using PrefixHintsDeathTest = PrefixHintsTest;

TEST_F(PrefixHintsDeathTest, StopsOnMisuse) {
  Make(8);
  User user = Use("aaaabb");
  EXPECT_DEATH(tree_->Hint(user.pages[1], {.time = {10}}), "page");  // not stored
  EXPECT_DEATH(tree_->Hint(user.pages[0], {.time = {0}}), "0");
  const PageId page = user.pages[0];
  Leave(user);
  EXPECT_DEATH(tree_->Hint(page, {.time = {10}}), "page");  // not in use
}

}  // namespace
}  // namespace plumb::kvcache
