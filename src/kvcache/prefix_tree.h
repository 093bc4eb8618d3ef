// kvcache/prefix_tree.h
// Keeps computed pages for whoever needs the same prefix again. A tree: a node is a page, its edge
// the page's tokens; a root is a chain's beginning (page_chain.h). Three ways in: by a sealed
// page's name, by the longest common beginning with a child's tokens, and by age for eviction,
// pages with a hint last. Everything is sized from the pool at the start; no call but
// CheckInvariants allocates. See docs/prefix_cache.md. Thread: engine thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/token_id.h"
#include "kvcache/checkpoint_store.h"
#include "kvcache/page_heap.h"
#include "kvcache/page_hints.h"
#include "kvcache/page_pool.h"

namespace plumb::kvcache {

// Where a page hangs: after the chain `chain`, whose last page is `parent` (none: the root).
struct PageEdge {
  std::optional<PageId> parent;
  base::Hash256 chain;
  std::span<const base::TokenId> tokens;  // of the page
};

// A stored page with all its tokens is *sealed*: named, shared, never written again. One with fewer
// is a *tail*, what the end of a sequence left; it is only ever copied, never shared.
// The tree holds one reference to each stored page, each user another. A page without users is
// idle: it may be evicted; those without a hint first, and among equals oldest use first. Users
// hold whole chains and give them back from the end, and who gives hints gives them to a chain's
// beginning; so a child always goes before its parent (CHECK).
class PrefixTree {
 public:
  // Both must outlive the tree. `checkpoints`, of the pool's pages, loses those of pages that go;
  // whoever uses a sealed page may add one. Null: there are none.
  explicit PrefixTree(PagePool& pool, CheckpointStore* checkpoints = nullptr);
  // Gives every page back; none may have a user (CHECK).
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // The sealed page of this name, compared in full.
  std::optional<PageId> Find(const base::Hash256& name) const;

  // The page after `chain` whose tokens begin most like `tokens`, sealed or tail. tokens == 0: none
  // has a token in common.
  struct Prefix {
    PageId page{};
    uint32_t tokens = 0;
  };
  Prefix FindPrefix(const base::Hash256& chain, std::span<const base::TokenId> tokens) const;

  // One more user of a stored page, one user fewer of any page. A page that is not stored is freed
  // by its last user.
  void Retain(PageId page);
  void Release(PageId page);
  // Likewise, of a stored page that was only copied, by whoever uses the pages before it: its hint
  // is not renewed, which would then outlast theirs.
  void ReleaseCopied(PageId page);

  // Stores a page that `edge.tokens` (a whole page) filled. When the name is stored already, the
  // caller's `page` is released and it becomes a user of the stored one, which is returned.
  PageId Seal(PageId page, const PageEdge& edge, const base::Hash256& name);

  // Stores a page that is filled in part; the caller's use ends. Freed when nothing is gained.
  void LeaveTail(PageId page, const PageEdge& edge);

  // Frees the `count` idle pages that come first; count <= idle() (CHECK).
  void Evict(uint32_t count);

  // The time of the calls that follow; earlier than before: nothing changes. Hints that have ended
  // by then are as if they had never been.
  void SetTime(base::Instant now);
  // Asks to keep a sealed page that the caller uses (CHECK) for hint.time after it was used last,
  // by whomever: it goes when no other page can. One that has a hint has the longer time from then
  // on. Whoever gives one to a page gives one as long to all before it in its chain, from the end,
  // before the next call of anything but Release. May be in vain: page_hints.h says how many there
  // can be.
  void Hint(PageId page, const PageHint& hint);

  uint32_t stored() const { return static_cast<uint32_t>(index_.size()); }
  uint32_t idle() const { return idle_.size(); }
  uint64_t evictions() const { return evictions_; }
  uint64_t hinted_evictions() const { return hinted_evictions_; }  // of them, in spite of a hint
  const PageHints& hints() const { return hints_; }
  CheckpointStore* checkpoints() const { return checkpoints_; }
  // A stored page without users.
  bool IsIdle(PageId page) const { return idle_.Has(page); }
  bool IsStored(PageId page) const { return node(page).tokens > 0; }

  // Everything this class promises about its own state, in O(pages): for tests and simulations.
  void CheckInvariants() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Orders the stored pages by chain, then by tokens.
  struct Key {
    const base::Hash256& chain;
    std::span<const base::TokenId> tokens;
  };
  struct ByContent {
    using is_transparent = void;
    const PrefixTree* tree;
    bool operator()(uint32_t a, uint32_t b) const;
    bool operator()(uint32_t a, const Key& b) const;
    bool operator()(const Key& a, uint32_t b) const;
  };
  // A multiset only so that its nodes can be made before their content is there.
  using ContentIndex = std::multiset<uint32_t, ByContent>;
  struct Node {
    base::Hash256 chain;      // before the page
    base::Hash256 name;       // of a sealed page
    uint32_t tokens = 0;      // 0: not stored
    uint32_t parent = kNone;  // page
    uint32_t children = 0;
    ContentIndex::iterator place;
  };

  const Node& node(PageId page) const { return nodes_[Index(page)]; }
  bool IsSealed(uint32_t page) const { return nodes_[page].tokens == page_tokens_; }
  Key KeyOf(uint32_t page) const;

  void Store(uint32_t page, const PageEdge& edge);
  void Forget(uint32_t page);  // an idle page without children; freed
  void ForgetTailWithin(const PageEdge& edge);
  void AddIdle(PageId page);
  void TakeHint(PageId page);
  void UseHint(PageId page, base::Duration time);
  void CheckOrder() const;

  // The names of sealed pages: open addressing, at most half full.
  uint64_t FirstSlot(const base::Hash256& name) const;
  void AddName(uint32_t page);
  void RemoveName(uint32_t page);

  PagePool& pool_;
  CheckpointStore* const checkpoints_;
  const uint32_t page_tokens_;
  const uint64_t salt_;                // so that nobody can choose prompts that crowd the table
  std::vector<Node> nodes_;            // [pool total], by page
  std::vector<base::TokenId> tokens_;  // [pool total][page_tokens]
  std::vector<uint32_t> slots_;        // [power of two], page or kNone
  ContentIndex index_;
  std::vector<ContentIndex::node_type> spare_;  // one for each page that is not stored
  // Of idle pages, the first to go first: by the number of their last use, those with hints behind
  // all others.
  PageHeap idle_;
  static constexpr uint64_t kBehind = uint64_t{1} << 63;
  uint64_t uses_ = 0;
  PageHints hints_;
  base::Instant now_{0};
  uint64_t evictions_ = 0, hinted_evictions_ = 0;
};

}  // namespace plumb::kvcache
