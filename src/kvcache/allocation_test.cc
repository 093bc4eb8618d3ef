// kvcache/allocation_test.cc: once pool and tree stand, nothing takes memory: storing, finding,
// leaving, hints and evicting included. Counts every operator new of the test binary.
#include <gtest/gtest.h>

#include <array>

#include "base/random.h"
#include "base/testing/allocation_count.h"
#include "kvcache/page_chain.h"
#include "kvcache/prefix_tree.h"

namespace plumb::kvcache {
namespace {

using base::TokenId;

constexpr uint32_t kPageTokens = 4;
constexpr uint32_t kChainPages = 5;

// A user of whole pages and a tail, which comes and goes: reuses, computes, seals and leaves.
void UseOnce(PagePool& pool, PrefixTree& tree, base::Rng& rng) {
  std::array<TokenId, kChainPages * kPageTokens> text;
  for (TokenId& token : text) token = TokenId{static_cast<uint32_t>(rng.Below(2))};
  const size_t length = 1 + rng.Below(text.size());
  std::array<base::Hash256, kChainPages + 1> chain;
  const uint64_t owner = rng.Below(5);
  chain[0].bytes[0] = static_cast<uint8_t>(owner);
  std::array<PageId, kChainPages> pages;
  size_t count = 0;
  for (; count * kPageTokens < length; ++count) {
    const size_t begin = count * kPageTokens;
    const auto tokens = std::span<const TokenId>(text).subspan(
        begin, std::min<size_t>(kPageTokens, length - begin));
    chain[count + 1] = ChainNext(chain[count], tokens);
    const PageEdge edge{.parent = count == 0 ? std::nullopt : std::optional(pages[count - 1]),
                        .chain = chain[count],
                        .tokens = tokens};
    const auto stored = tree.Find(chain[count + 1]);
    if (stored && rng.Below(2) == 0) {
      tree.Retain(*stored);
      pages[count] = *stored;
      continue;
    }
    (void)tree.FindPrefix(edge.chain, edge.tokens);
    if (pool.free() == 0) tree.Evict(1);
    pages[count] = *pool.Allocate();
    if (tokens.size() == kPageTokens) {
      pages[count] = tree.Seal(pages[count], edge, chain[count + 1]);
      if (!tree.checkpoints()->Has(pages[count])) (void)tree.checkpoints()->Add(pages[count]);
    } else {
      tree.LeaveTail(pages[count], edge);
      break;
    }
  }
  const PageHint hint{.owner = owner, .time = {static_cast<int64_t>(1 + rng.Below(90))}};
  const size_t hinted = rng.Below(count + 1);
  while (count-- > 0) {
    if (count < hinted) tree.Hint(pages[count], hint);
    tree.Release(pages[count]);
  }
}

TEST(PrefixTreeAllocation, NoneOnceItStands) {
  const PageLayout layout{.page_tokens = kPageTokens, .page_bytes = 64, .checkpoint_bytes = 16};
  const auto pool = PagePool::Create(layout, uint64_t{24} * PagePool::kAlignment).value();
  const auto checkpoints = CheckpointStore::Create(layout, pool->total(), 5).value();
  PrefixTree tree(*pool, checkpoints.get());
  base::Rng rng(1);
  const uint64_t before = base::testing::allocation_count.load();
  EXPECT_GT(before, 0u);
  for (int use = 0; use < 5000; ++use) {
    tree.SetTime({use});
    UseOnce(*pool, tree, rng);
    if (use % 50 == 0) tree.Evict(tree.idle());  // of those with hints, too
  }
  EXPECT_EQ(base::testing::allocation_count.load(), before);
  EXPECT_GT(tree.evictions(), 1000u);
  EXPECT_GT(tree.hinted_evictions(), 10u);
  EXPECT_GT(tree.hints().count(), 0u);
  EXPECT_GT(tree.stored(), 0u);
  EXPECT_GT(checkpoints->evictions(), 1000u);
  tree.CheckInvariants();
}

}  // namespace
}  // namespace plumb::kvcache
