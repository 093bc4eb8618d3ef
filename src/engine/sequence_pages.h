// engine/sequence_pages.h
// The pages of the running sequences: taken from the pool, reused from the prefix tree, stored
// there as they fill, given back. The scheduler decides who runs; here is what that means for
// pages. Read next: kvcache/prefix_tree.h, docs/prefix_cache.md. Thread: engine thread only.
#pragma once

#include <cstdint>
#include <span>

#include "base/hash.h"
#include "engine/sequence.h"
#include "kvcache/page_pool.h"
#include "kvcache/prefix_tree.h"

namespace plumb::engine {

// Fewer tokens than so many are computed again rather than copied with their page.
constexpr uint32_t kCopyTokensMin = 8;

class SequencePages {
 public:
  // Both must outlive this. `tree` null: nothing is reused; else a sequence that is begun has
  // `tokens`, and `chain` up to its prompt's last whole page.
  SequencePages(kvcache::PagePool& pool, kvcache::PrefixTree* tree) : pool_(pool), tree_(tree) {}

  // Takes the whole pages that the tree has of the sequence, where `computed` then stands. False
  // when fewer than those that it Needs then and `spare` more can be had: nothing changed. `older`:
  // as for Needs.
  bool Begin(Sequence& sequence, std::span<Sequence* const> older, uint32_t spare);

  // Pages that the sequence has yet to take for the tokens it knows, as long as the `older` running
  // ones go on: their whole pages it shares once they are computed.
  uint32_t Needs(const Sequence& sequence, std::span<Sequence* const> older) const;

  // Pages for the first `length` tokens; false when too few can be had: nothing changed.
  bool Grow(Sequence& sequence, uint32_t length);

  // Moves past whole pages that others have computed since.
  void Adopt(Sequence& sequence);
  // Copies the beginning of the next page, if the sequence has computed nothing of it yet and there
  // is a page for it.
  void AdoptPartial(Sequence& sequence);

  // The name of the page that the sequence computes now, null when no other could take it whole:
  // its last one, an answer's, or nothing is reused.
  const base::Hash256* PageInWork(const Sequence& sequence) const;

  // After `computed` was raised: what is full goes to the tree.
  void Seal(Sequence& sequence);

  // Gives all pages back; `computed` is 0 then.
  void Release(Sequence& sequence);

  // Sequences that reused something when they first ran, and the tokens of it.
  uint64_t hits() const { return hits_; }
  uint64_t reused_tokens() const { return reused_tokens_; }

  const kvcache::PageLayout& layout() const { return pool_.layout(); }
  uint32_t total() const { return pool_.total(); }

 private:
  // Tokens that need not be computed when others have: all but the last, and those whose logits are
  // wanted.
  static uint32_t SkippableTokens(const Sequence& sequence);
  // Whole pages from the tree that the sequence may have.
  uint32_t ReusablePages(const Sequence& sequence) const;
  uint32_t NeedsAfter(const Sequence& sequence, uint32_t held, uint32_t sealed,
                      std::span<Sequence* const> older) const;
  kvcache::PrefixTree::Prefix FindPartial(const Sequence& sequence) const;
  kvcache::PageEdge Edge(const Sequence& sequence, size_t page, size_t tokens) const;
  void SkipTo(Sequence& sequence, uint32_t computed);
  uint32_t available() const { return pool_.free() + (tree_ != nullptr ? tree_->idle() : 0); }
  void ReleaseOne(kvcache::PageId page);

  kvcache::PagePool& pool_;
  kvcache::PrefixTree* const tree_;
  uint64_t hits_ = 0;
  uint64_t reused_tokens_ = 0;
};

}  // namespace plumb::engine
