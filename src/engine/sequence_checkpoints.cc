// engine/sequence_checkpoints.cc
// The pages of sequences whose model needs a checkpoint to go on from a page boundary: where they
// begin, for whom they wait, where their rows end so that a checkpoint can be taken, and which are
// kept. Behind engine/sequence_pages.h; the rules and why: docs/prefix_cache.md.
#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "engine/sequence_pages.h"

namespace plumb::engine {

using kvcache::PageId;

void SequencePages::AdoptFromCheckpoint(Sequence& sequence) {
  // A checkpoint is added to a page in use, and a page never goes before those before it: so unless
  // one was added since, there is nothing new to find.
  if (checkpoints_ == nullptr || sequence.checkpoints_seen == checkpoints_->added()) return;
  sequence.checkpoints_seen = checkpoints_->added();
  const uint32_t usable = FindStored(sequence).usable;
  if (usable == sequence.sealed) return;
  TakeStored(sequence, usable);
  CHECK(sequence.sealed == usable) << sequence.sealed << " of " << usable;
  const PageId last = sequence.pages[usable - 1];
  states_->Load(sequence, checkpoints_->Use(last), usable * layout().page_tokens);
  ++resumed_;
}

void SequencePages::PlanCheckpoints(Sequence& sequence, std::span<Sequence* const> running,
                                    uint32_t found) {
  if (checkpoints_ == nullptr) return;
  const uint32_t page_tokens = layout().page_tokens;
  // More was there than could be used: the next one that has as much in common shall use it.
  if (found > sequence.sealed) sequence.branch = found * page_tokens;
  // Of two that compute the same, the one that goes first stores where the other leaves it.
  for (Sequence* other : running) {
    Sequence& first = Outranks(other, &sequence) ? *other : sequence;
    const Sequence& second = &first == other ? sequence : *other;
    const uint32_t shared = std::min(SharedPages(first, second), ReusablePages(second));
    const uint32_t boundary = shared * page_tokens;
    if (boundary <= first.computed || boundary <= second.computed) continue;
    if (first.branch <= first.computed) first.branch = boundary;
  }
  // What is said to be worth keeping is likely to be gone on from.
  if (sequence.branch <= sequence.computed) sequence.branch = HintBoundary(sequence);
}

bool SequencePages::WaitsForCheckpoint(const Sequence& sequence,
                                       std::span<Sequence* const> outranking) const {
  if (checkpoints_ == nullptr) return false;
  const uint32_t most = ReusablePages(sequence);
  for (const Sequence* other : outranking) {
    // It is no nearer, or will store no more.
    const std::array stores{other->branch, ResumeBoundary(*other)};
    if (other->computed < sequence.computed) continue;
    if (std::ranges::max(stores) <= other->computed) continue;
    const uint32_t shared = std::min(most, SharedPages(sequence, *other)) * layout().page_tokens;
    for (const uint32_t boundary : stores) {
      if (boundary > other->computed && boundary <= shared) return true;
    }
  }
  return false;
}

uint32_t SequencePages::RowsMax(const Sequence& sequence) const {
  uint32_t rows = sequence.remaining();
  if (checkpoints_ == nullptr) return rows;
  const uint32_t page_tokens = layout().page_tokens;
  // The last two of what is known, in case that it ends here.
  const uint32_t last = sequence.full_pass ? 0 : sequence.length / page_tokens * page_tokens;
  const uint32_t before_last = last - std::min(last, page_tokens);
  const std::array wanted{ResumeBoundary(sequence), sequence.branch, before_last, last};
  for (const uint32_t boundary : wanted) {
    if (boundary <= sequence.computed || boundary - sequence.computed >= rows) continue;
    if (!HasCheckpoint(sequence, boundary)) rows = boundary - sequence.computed;
  }
  return rows;
}

void SequencePages::NoteBoundary(Sequence& sequence) {
  const uint32_t page_tokens = layout().page_tokens;
  const uint32_t boundary = sequence.sealed * page_tokens;
  const PageId page = sequence.pages[sequence.sealed - 1];
  sequence.held.kept[sequence.sealed % HeldState::kKeptMax] = 0;  // two pages before: too old
  if (checkpoints_->Has(page)) {
    (void)checkpoints_->Use(page);
  } else if (!states_->CanSave(sequence, boundary)) {
    return;  // in the middle of a part of a prompt, where none is wanted
  } else if (boundary == ResumeBoundary(sequence) || boundary == sequence.branch) {
    states_->Save(sequence, boundary, checkpoints_->Add(page));
  } else if (!sequence.full_pass && boundary + 2 * page_tokens > sequence.length) {
    states_->Keep(sequence, boundary);
  }
}

void SequencePages::StoreKept(const Sequence& sequence) {
  std::array<size_t, HeldState::kKeptMax> places{0, 1};
  const auto& kept = sequence.held.kept;
  if (kept[0] > kept[1]) std::swap(places[0], places[1]);  // the last one is used last
  for (const size_t place : places) {
    if (kept[place] == 0) continue;
    const PageId page = sequence.pages[kept[place] / layout().page_tokens - 1];
    if (checkpoints_->Has(page)) {
      (void)checkpoints_->Use(page);
    } else {
      std::ranges::copy(states_->Kept(sequence, place), checkpoints_->Add(page).begin());
    }
  }
}

void SequencePages::BeginAnew(Sequence& sequence) {
  CHECK(states_ != nullptr && sequence.full_pass && sequence.remaining() == 0);
  ReleasePages(sequence);
  sequence.held.end = 0;
  sequence.held.kept = {};
  sequence.full_pass = false;
  sequence.full_pass_done = true;
}

uint32_t SequencePages::ResumeBoundary(const Sequence& sequence) const {
  return sequence.resume_max / layout().page_tokens * layout().page_tokens;
}

uint32_t SequencePages::HintBoundary(const Sequence& sequence) const {
  uint32_t last = 0;
  for (const PromptHint& hint : sequence.hints) {
    const uint32_t boundary = hint.pages * layout().page_tokens;
    if (boundary < ResumeBoundary(sequence)) last = std::max(last, boundary);
  }
  return last;
}

uint32_t SequencePages::SharedPages(const Sequence& a, const Sequence& b) {
  // Names are chains: where they are equal, all before is.
  uint32_t low = 0;
  uint32_t high = static_cast<uint32_t>(std::min(a.chain.size(), b.chain.size()));
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (a.chain[middle] == b.chain[middle]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - std::min(low, 1u);  // the root is no page
}

bool SequencePages::HasCheckpoint(const Sequence& sequence, uint32_t boundary) const {
  const size_t place = boundary / layout().page_tokens;
  if (place >= sequence.chain.size()) return false;
  const auto page = tree_->Find(sequence.chain[place]);
  return page && checkpoints_->Has(*page);
}

}  // namespace plumb::engine
