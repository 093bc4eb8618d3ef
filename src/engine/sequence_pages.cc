// engine/sequence_pages.cc
// Reuse and return of pages, behind engine/sequence_pages.h.
#include "engine/sequence_pages.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kvcache/page_chain.h"

namespace plumb::engine {

using kvcache::PageId;

SequencePages::SequencePages(kvcache::PagePool& pool, kvcache::PrefixTree* tree,
                             SequenceStates* states)
    : pool_(pool),
      tree_(tree),
      states_(states),
      checkpoints_(tree != nullptr && states != nullptr ? tree->checkpoints() : nullptr) {
  CHECK(tree == nullptr || (states != nullptr) == (tree->checkpoints() != nullptr))
      << "a tree has checkpoints exactly when sequences have states";
}

bool SequencePages::Begin(Sequence& sequence, std::span<Sequence* const> older, uint32_t spare) {
  CHECK(sequence.pages.empty() && sequence.computed == 0 && sequence.sealed == 0);
  const Stored stored = FindStored(sequence);
  // Idle pages that are reused cannot be evicted as well.
  const uint32_t needed = NeedsAfter(sequence, stored.usable, stored.usable, older);
  if (available() < stored.idle + needed + spare) return false;

  const uint32_t most = layout().PagesFor(sequence.length_max);
  sequence.pages.reserve(most);
  sequence.page_data.reserve(most);
  if (tree_ != nullptr) sequence.chain.reserve(most + 1);
  if (states_ != nullptr) states_->Take(sequence);
  Adopt(sequence);
  CHECK(sequence.sealed == stored.usable) << sequence.sealed << " of " << stored.usable;
  PlanCheckpoints(sequence, older, stored.found);
  return true;
}

uint32_t SequencePages::Needs(const Sequence& sequence, std::span<Sequence* const> older) const {
  return NeedsAfter(sequence, static_cast<uint32_t>(sequence.pages.size()), sequence.sealed, older);
}

uint32_t SequencePages::NeedsAfter(const Sequence& sequence, uint32_t held, uint32_t sealed,
                                   std::span<Sequence* const> older) const {
  // Names are chains: whoever has the page of a place in common has all before it in common.
  const uint32_t most = ReusablePages(sequence);
  uint32_t shared = sealed;
  for (const Sequence* other : older) {
    if (shared >= most) break;
    const uint32_t end = std::min(most, static_cast<uint32_t>(other->chain.size()) - 1);
    while (shared < end && sequence.chain[shared + 1] == other->chain[shared + 1]) ++shared;
  }
  // It may hold one already for tokens that it only guessed.
  const uint32_t needed = layout().PagesFor(sequence.length);
  return needed - std::min(needed, std::max(held, shared));
}

bool SequencePages::Grow(Sequence& sequence, uint32_t length) {
  const size_t needed = layout().PagesFor(length);
  if (sequence.pages.size() + available() < needed) return false;
  while (sequence.pages.size() < needed) {
    if (pool_.free() == 0) tree_->Evict(1);
    const PageId page = *pool_.Allocate();
    sequence.pages.push_back(page);
    sequence.page_data.push_back(pool_.Data(page).data());
  }
  return true;
}

SequencePages::Stored SequencePages::FindStored(const Sequence& sequence) const {
  Stored stored{.found = sequence.sealed, .usable = sequence.sealed};
  uint32_t idle = 0;
  for (const uint32_t most = ReusablePages(sequence); stored.found < most;) {
    const auto page = tree_->Find(sequence.chain[stored.found + 1]);
    if (!page) break;
    ++stored.found;
    idle += tree_->IsIdle(*page);
    if (checkpoints_ != nullptr && !checkpoints_->Has(*page)) continue;
    stored.usable = stored.found;
    stored.idle = idle;
  }
  return stored;
}

void SequencePages::Adopt(Sequence& sequence) {
  if (states_ != nullptr) return AdoptFromCheckpoint(sequence);
  TakeStored(sequence, ReusablePages(sequence));
}

void SequencePages::TakeStored(Sequence& sequence, uint32_t end) {
  while (sequence.sealed < end) {
    const uint32_t place = sequence.sealed;
    const auto page = tree_->Find(sequence.chain[place + 1]);
    if (!page) return;
    tree_->Retain(*page);
    if (place == sequence.pages.size()) {
      sequence.pages.emplace_back();
      sequence.page_data.emplace_back();
    } else {
      tree_->Release(sequence.pages[place]);
    }
    sequence.pages[place] = *page;
    sequence.page_data[place] = pool_.Data(*page).data();
    ++sequence.sealed;
    sequence.sealed_max = std::max(sequence.sealed_max, sequence.sealed);
    SkipTo(sequence, sequence.sealed * layout().page_tokens);
  }
}

void SequencePages::AdoptPartial(Sequence& sequence) {
  if (states_ != nullptr) return;  // it cannot go on in the middle of a page
  if (sequence.computed != sequence.sealed * layout().page_tokens) return;
  const auto partial = FindPartial(sequence);
  if (partial.tokens == 0) return;
  // A user while it is copied, or it might be evicted for the copy's page.
  tree_->Retain(partial.page);
  const uint32_t computed = sequence.computed + partial.tokens;
  const bool fits = Grow(sequence, computed);
  if (fits) pool_.Copy(partial.page, sequence.pages[sequence.sealed]);
  tree_->ReleaseCopied(partial.page);
  if (fits) SkipTo(sequence, computed);
}

const base::Hash256* SequencePages::PageInWork(const Sequence& sequence) const {
  if (states_ != nullptr || sequence.sealed >= ReusablePages(sequence)) return nullptr;
  return &sequence.chain[sequence.sealed + 1];
}

void SequencePages::Seal(Sequence& sequence) {
  if (tree_ == nullptr) return;
  const uint32_t page_tokens = layout().page_tokens, before = sequence.sealed;
  for (; (sequence.sealed + 1) * page_tokens <= sequence.computed; ++sequence.sealed) {
    const uint32_t place = sequence.sealed;
    const kvcache::PageEdge edge = Edge(sequence, place, page_tokens);
    if (sequence.chain.size() == place + 1) {
      sequence.chain.push_back(kvcache::ChainNext(edge.chain, edge.tokens));
    }
    const PageId page = tree_->Seal(sequence.pages[place], edge, sequence.chain[place + 1]);
    CountStored(sequence, place, page == sequence.pages[place]);
    sequence.pages[place] = page;
    sequence.page_data[place] = pool_.Data(page).data();
  }
  if (checkpoints_ != nullptr && sequence.sealed > before) NoteBoundary(sequence);
}

void SequencePages::Release(Sequence& sequence) {
  ReleasePages(sequence);
  sequence.branch = 0;
  if (states_ != nullptr && sequence.held.data != nullptr) states_->GiveBack(sequence);
}

void SequencePages::End(Sequence& sequence) {
  if (checkpoints_ != nullptr) StoreKept(sequence);
  Release(sequence);
}

void SequencePages::ReleasePages(Sequence& sequence) {
  const uint32_t page_tokens = layout().page_tokens;
  const uint32_t tail = sequence.computed - sequence.sealed * page_tokens;
  // From the end: a page's child is always given back before it.
  for (; !sequence.pages.empty(); sequence.pages.pop_back()) {
    const size_t place = sequence.pages.size() - 1;
    const auto* hint = place < sequence.sealed ? HintFor(sequence, place) : nullptr;
    // More than an owner may have are not asked for: the first pages are of most use.
    if (hint != nullptr && place < tree_->hints().owner_max()) {
      tree_->Hint(sequence.pages[place],
                  {.owner = sequence.chain.front().prefix(), .time = hint->time});
    }
    const bool copied = tree_ != nullptr && states_ == nullptr;
    if (copied && place == sequence.sealed && tail >= kCopyTokensMin) {
      tree_->LeaveTail(sequence.pages[place], Edge(sequence, place, tail));
    } else {
      ReleaseOne(sequence.pages[place]);
    }
  }
  sequence.page_data.clear();
  sequence.computed = 0;
  sequence.sealed = 0;
  sequence.checkpoints_seen = UINT64_MAX;
}

uint32_t SequencePages::ReusablePages(const Sequence& sequence) const {
  if (tree_ == nullptr) return 0;
  CHECK(!sequence.chain.empty() && sequence.tokens != nullptr);
  return std::min(static_cast<uint32_t>(sequence.chain.size()) - 1,
                  SkippableTokens(sequence) / layout().page_tokens);
}

uint32_t SequencePages::SkippableTokens(const Sequence& sequence) const {
  const uint32_t skippable =
      std::min({sequence.length - 1, sequence.logits_from, sequence.hidden_from});
  if (states_ == nullptr) return skippable;
  return std::min(skippable, sequence.full_pass ? 0 : sequence.resume_max);
}

kvcache::PrefixTree::Prefix SequencePages::FindPartial(const Sequence& sequence) const {
  if (tree_ == nullptr) return {};
  const uint32_t end = SkippableTokens(sequence);
  const uint32_t left = end - std::min(end, sequence.computed);
  const uint32_t most = std::min(left, layout().page_tokens - 1);
  if (most < kCopyTokensMin) return {};
  const kvcache::PageEdge edge = Edge(sequence, sequence.sealed, most);
  const auto found = tree_->FindPrefix(edge.chain, edge.tokens);
  return found.tokens >= kCopyTokensMin ? found : kvcache::PrefixTree::Prefix{};
}

kvcache::PageEdge SequencePages::Edge(const Sequence& sequence, size_t page, size_t tokens) const {
  return {.parent = page == 0 ? std::nullopt : std::optional(sequence.pages[page - 1]),
          .chain = sequence.chain[page],
          .tokens = {sequence.tokens + page * layout().page_tokens, tokens}};
}

void SequencePages::SkipTo(Sequence& sequence, uint32_t computed) {
  CHECK(computed > sequence.computed && computed < sequence.length);
  const uint32_t skipped = computed - sequence.computed;
  sequence.computed = computed;
  if (sequence.preempted || sequence.full_pass_done) return;  // its own work, perhaps
  hits_ += sequence.cached == 0;
  reused_tokens_ += skipped;
  sequence.cached += skipped;
  sequence.cached_in_page = computed % layout().page_tokens;
}

PromptHint* SequencePages::HintFor(Sequence& sequence, uint32_t place) {
  PromptHint* longest = nullptr;
  for (PromptHint& hint : sequence.hints) {
    if (place >= hint.pages) continue;
    if (longest == nullptr || hint.time > longest->time) longest = &hint;
  }
  return longest;
}

void SequencePages::CountStored(Sequence& sequence, uint32_t place, bool is_new) {
  if (place < sequence.sealed_max) return;  // once more, after it was preempted
  sequence.sealed_max = place + 1;
  const uint32_t given = std::exchange(sequence.cached_in_page, 0);
  PromptHint* hint = HintFor(sequence, place);
  if (is_new && hint != nullptr) hint->stored_tokens += layout().page_tokens - given;
}

void SequencePages::ReleaseOne(PageId page) {
  if (tree_ != nullptr) {
    tree_->Release(page);
  } else {
    pool_.Release(page);
  }
}

}  // namespace plumb::engine
