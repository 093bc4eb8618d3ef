// engine/sequence_pages.h
// The pages of the running sequences: taken from the pool, reused from the prefix tree, stored
// there as they fill, given back; and their states, where the model has those. The scheduler
// decides who runs; here is what that means for pages. Read next: kvcache/prefix_tree.h,
// docs/prefix_cache.md. Thread: engine thread only.
#pragma once

#include <cstdint>
#include <span>

#include "base/hash.h"
#include "engine/sequence.h"
#include "engine/sequence_states.h"
#include "kvcache/page_pool.h"
#include "kvcache/prefix_tree.h"

namespace plumb::engine {

// Fewer tokens than so many are computed again rather than copied with their page.
constexpr uint32_t kCopyTokensMin = 8;

class SequencePages {
 public:
  // All must outlive this. `tree` null: nothing is reused; else a sequence that is begun has
  // `tokens`, and `chain` up to its prompt's last whole page. `states` null: pages suffice for the
  // model; else the tree has checkpoints (CHECK), and is only used where there is one.
  SequencePages(kvcache::PagePool& pool, kvcache::PrefixTree* tree, SequenceStates* states);

  // Takes the whole pages that the tree has of the sequence, where `computed` then stands, and a
  // state if there are any. False when fewer pages than those that it Needs then and `spare` more
  // can be had: nothing changed. `older`: as for Needs; they may be asked for a checkpoint.
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
  // its last one, an answer's, or nothing is reused page by page.
  const base::Hash256* PageInWork(const Sequence& sequence) const;
  // Whether one of the `outranking` running ones is about to store a checkpoint from which the
  // sequence could go on, and is no further from it: it had better wait.
  bool WaitsForCheckpoint(const Sequence& sequence, std::span<Sequence* const> outranking) const;

  // Rows that a prompt may have at once: the remaining ones, or those up to a page boundary whose
  // checkpoint is to be taken.
  uint32_t RowsMax(const Sequence& sequence) const;

  // After `computed` and `held.end` were raised: what is full goes to the tree, and so does the
  // checkpoint of the boundary just passed, if it is one to be stored.
  void Seal(Sequence& sequence);

  // Gives all pages and the state back, with the hints of its request; `computed` is 0 then. End:
  // it will not come back, so the checkpoints that it kept are stored.
  void Release(Sequence& sequence);
  void End(Sequence& sequence);
  // Once its full pass is done (CHECK): gives the pages back, for the pass that is sampled from.
  void BeginAnew(Sequence& sequence);

  // Sequences that reused something when they first ran, and the tokens of it.
  uint64_t hits() const { return hits_; }
  uint64_t reused_tokens() const { return reused_tokens_; }
  // Times that a sequence went on from a checkpoint.
  uint64_t resumed() const { return resumed_; }

  const kvcache::PageLayout& layout() const { return pool_.layout(); }
  uint32_t total() const { return pool_.total(); }

 private:
  // Pages in the tree after those that the sequence has sealed, as places from its first one.
  struct Stored {
    uint32_t found = 0;   // up to here, as far as they could be of use
    uint32_t usable = 0;  // up to here they can be taken: all, or those before a checkpoint
    uint32_t idle = 0;    // of the usable ones
  };

  // Tokens that need not be computed when others have: all but the last, those whose logits or
  // hidden states are wanted, and those behind resume_max.
  uint32_t SkippableTokens(const Sequence& sequence) const;
  // Whole pages from the tree that the sequence may have.
  uint32_t ReusablePages(const Sequence& sequence) const;
  uint32_t NeedsAfter(const Sequence& sequence, uint32_t held, uint32_t sealed,
                      std::span<Sequence* const> older) const;
  Stored FindStored(const Sequence& sequence) const;
  // Up to place `end`, as far as they are there.
  void TakeStored(Sequence& sequence, uint32_t end);
  kvcache::PrefixTree::Prefix FindPartial(const Sequence& sequence) const;
  kvcache::PageEdge Edge(const Sequence& sequence, size_t page, size_t tokens) const;
  void SkipTo(Sequence& sequence, uint32_t computed);
  // The hint that holds for the page at that place; null: none.
  static PromptHint* HintFor(Sequence& sequence, uint32_t place);
  void CountStored(Sequence& sequence, uint32_t place, bool is_new);
  uint32_t available() const { return pool_.free() + (tree_ != nullptr ? tree_->idle() : 0); }
  void ReleasePages(Sequence& sequence);
  void ReleaseOne(kvcache::PageId page);

  // With checkpoints: sequence_checkpoints.cc.
  void AdoptFromCheckpoint(Sequence& sequence);
  void PlanCheckpoints(Sequence& sequence, std::span<Sequence* const> running, uint32_t found);
  void NoteBoundary(Sequence& sequence);
  void StoreKept(const Sequence& sequence);
  // The last boundary from which the sequence's request could go on.
  uint32_t ResumeBoundary(const Sequence& sequence) const;
  // The last boundary before that where a hint of its request ends; 0: there is none.
  uint32_t HintBoundary(const Sequence& sequence) const;
  static uint32_t SharedPages(const Sequence& a, const Sequence& b);
  bool HasCheckpoint(const Sequence& sequence, uint32_t boundary) const;

  kvcache::PagePool& pool_;
  kvcache::PrefixTree* const tree_;
  SequenceStates* const states_;
  kvcache::CheckpointStore* const checkpoints_;  // the tree's; null without states
  uint64_t hits_ = 0;
  uint64_t reused_tokens_ = 0;
  uint64_t resumed_ = 0;
};

}  // namespace plumb::engine
