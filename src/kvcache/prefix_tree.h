// kvcache/prefix_tree.h
// Keeps computed pages for whoever needs the same prefix again. A tree: a node is a page, its edge
// the page's tokens; a root is a chain's beginning (page_chain.h). Three ways in: by a sealed
// page's name, by the longest common beginning with a child's tokens, and by age for eviction.
// Everything is sized from the pool at the start; no call but CheckInvariants allocates. See
// docs/prefix_cache.md. Thread: engine thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/token_id.h"
#include "kvcache/checkpoint_store.h"
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
// idle: it may be evicted, oldest use first. Users hold whole chains and give them back from the
// end, so a child is always older than its parent and goes first (CHECK).
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

  // Stores a page that `edge.tokens` (a whole page) filled. When the name is stored already, the
  // caller's `page` is released and it becomes a user of the stored one, which is returned.
  PageId Seal(PageId page, const PageEdge& edge, const base::Hash256& name);

  // Stores a page that is filled in part; the caller's use ends. Freed when nothing is gained.
  void LeaveTail(PageId page, const PageEdge& edge);

  // Frees the `count` idle pages that were used least recently; count <= idle() (CHECK).
  void Evict(uint32_t count);

  uint32_t stored() const { return static_cast<uint32_t>(index_.size()); }
  uint32_t idle() const { return idle_; }
  uint64_t evictions() const { return evictions_; }
  CheckpointStore* checkpoints() const { return checkpoints_; }
  // A stored page without users.
  bool IsIdle(PageId page) const { return node(page).idle; }
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
    bool idle = false;
    uint32_t older = kNone, newer = kNone;  // among the idle ones
    ContentIndex::iterator place;
  };

  const Node& node(PageId page) const { return nodes_[Index(page)]; }
  bool IsSealed(uint32_t page) const { return nodes_[page].tokens == page_tokens_; }
  Key KeyOf(uint32_t page) const;

  void Store(uint32_t page, const PageEdge& edge);
  void Forget(uint32_t page);  // an idle page without children; freed
  void ForgetTailWithin(const PageEdge& edge);
  void AppendIdle(uint32_t page);
  void UnlinkIdle(uint32_t page);

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
  uint32_t oldest_ = kNone, newest_ = kNone;    // idle pages
  uint32_t idle_ = 0;
  uint64_t evictions_ = 0;
};

}  // namespace plumb::kvcache
