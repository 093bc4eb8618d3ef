// kvcache/prefix_tree.cc
// Storing, forgetting and the two indices, behind kvcache/prefix_tree.h.
#include "kvcache/prefix_tree.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace plumb::kvcache {
namespace {

using base::Hash256;
using base::TokenId;

bool Less(const Hash256& chain_a, std::span<const TokenId> tokens_a, const Hash256& chain_b,
          std::span<const TokenId> tokens_b) {
  if (chain_a != chain_b) return chain_a < chain_b;
  return std::lexicographical_compare(tokens_a.begin(), tokens_a.end(), tokens_b.begin(),
                                      tokens_b.end());
}

uint32_t CommonTokens(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<uint32_t>(end - a.begin());
}

}  // namespace

bool PrefixTree::ByContent::operator()(uint32_t a, uint32_t b) const {
  const Key key_a = tree->KeyOf(a), key_b = tree->KeyOf(b);
  return Less(key_a.chain, key_a.tokens, key_b.chain, key_b.tokens);
}
bool PrefixTree::ByContent::operator()(uint32_t a, const Key& b) const {
  const Key key_a = tree->KeyOf(a);
  return Less(key_a.chain, key_a.tokens, b.chain, b.tokens);
}
bool PrefixTree::ByContent::operator()(const Key& a, uint32_t b) const {
  const Key key_b = tree->KeyOf(b);
  return Less(a.chain, a.tokens, key_b.chain, key_b.tokens);
}

PrefixTree::PrefixTree(PagePool& pool, CheckpointStore* checkpoints)
    : pool_(pool),
      checkpoints_(checkpoints),
      page_tokens_(pool.layout().page_tokens),
      salt_(base::EntropySeed()),
      nodes_(pool.total()),
      tokens_(size_t{pool.total()} * page_tokens_),
      slots_(std::bit_ceil(uint64_t{2} * pool.total()), kNone),
      index_(ByContent{this}),
      idle_(pool.total()),
      hints_(pool.total()) {
  spare_.reserve(pool.total());
  for (uint32_t page = 0; page < pool.total(); ++page) index_.insert(index_.end(), page);
  while (!index_.empty()) spare_.push_back(index_.extract(index_.begin()));
}

PrefixTree::~PrefixTree() {
  CHECK(idle() == stored()) << stored() - idle() << " stored pages are in use";
  Evict(idle());
}

std::optional<PageId> PrefixTree::Find(const Hash256& name) const {
  const uint64_t mask = slots_.size() - 1;
  for (uint64_t slot = FirstSlot(name); slots_[slot] != kNone; slot = (slot + 1) & mask) {
    if (nodes_[slots_[slot]].name == name) return PageId{slots_[slot]};
  }
  return std::nullopt;
}

PrefixTree::Prefix PrefixTree::FindPrefix(const Hash256& chain,
                                          std::span<const TokenId> tokens) const {
  // Among sorted strings, one of the two neighbours shares the longest beginning.
  const auto after = index_.lower_bound(Key{chain, tokens});
  Prefix best;
  const auto consider = [&](uint32_t page) {
    if (nodes_[page].chain != chain) return;
    const uint32_t common = CommonTokens(tokens, KeyOf(page).tokens);
    if (common > best.tokens) best = {PageId{page}, common};
  };
  if (after != index_.end()) consider(*after);
  if (after != index_.begin()) consider(*std::prev(after));
  return best;
}

void PrefixTree::Retain(PageId page) {
  CHECK(IsStored(page)) << "page " << Index(page) << " is not stored";
  if (IsIdle(page)) idle_.Remove(page);
  pool_.Retain(page);
}

void PrefixTree::Release(PageId page) {
  CHECK(!IsIdle(page)) << "page " << Index(page) << " has no users";
  if (!IsStored(page)) return pool_.Release(page);
  // At each use, not only the last one's end: so no page's hint ends before that of a child.
  if (hints_.Has(page)) UseHint(page, {});
  ReleaseCopied(page);
}

void PrefixTree::ReleaseCopied(PageId page) {
  CHECK(IsStored(page) && !IsIdle(page)) << "page " << Index(page) << " has no users";
  pool_.Release(page);
  if (pool_.references(page) == 1) AddIdle(page);
}

PageId PrefixTree::Seal(PageId page, const PageEdge& edge, const Hash256& name) {
  CHECK(edge.tokens.size() == page_tokens_) << edge.tokens.size();
  CHECK(!IsStored(page)) << "page " << Index(page) << " is sealed twice";
  if (const auto stored = Find(name)) {
    Retain(*stored);
    Release(page);
    return *stored;
  }
  ForgetTailWithin(edge);
  pool_.Retain(page);
  Node& node = nodes_[Index(page)];
  node.name = name;
  Store(Index(page), edge);
  AddName(Index(page));
  return page;
}

void PrefixTree::LeaveTail(PageId page, const PageEdge& edge) {
  CHECK(!edge.tokens.empty() && edge.tokens.size() < page_tokens_) << edge.tokens.size();
  CHECK(!IsStored(page) && pool_.references(page) == 1) << "page " << Index(page) << " is shared";
  if (FindPrefix(edge.chain, edge.tokens).tokens == edge.tokens.size()) return Release(page);
  ForgetTailWithin(edge);
  Store(Index(page), edge);
  AddIdle(page);
}

void PrefixTree::Evict(uint32_t count) {
  CHECK(count <= idle()) << count << " of " << idle();
  for (; count > 0; --count) {
    const PageId page = idle_.First();
    hinted_evictions_ += hints_.Has(page);
    Forget(Index(page));
    ++evictions_;
  }
}

void PrefixTree::SetTime(base::Instant now) {
  now_ = std::max(now_, now);
  while (const auto page = hints_.Ended(now_)) TakeHint(*page);
}

void PrefixTree::Hint(PageId page, const PageHint& hint) {
  CHECK(IsStored(page) && IsSealed(Index(page)) && !IsIdle(page)) << "page " << Index(page);
  if (hints_.Has(page)) return UseHint(page, hint.time);
  if (hints_.count_max() == 0) return;
  if (const auto other = hints_.InTheWay(hint.owner)) TakeHint(*other);
  hints_.Give(page, hint, now_);
  if (checkpoints_ != nullptr) checkpoints_->SetHint(page, hint.owner);
}

PrefixTree::Key PrefixTree::KeyOf(uint32_t page) const {
  const std::span<const TokenId> all(tokens_);
  return {nodes_[page].chain, all.subspan(size_t{page} * page_tokens_, nodes_[page].tokens)};
}

void PrefixTree::Store(uint32_t page, const PageEdge& edge) {
  Node& node = nodes_[page];
  node.chain = edge.chain;
  node.tokens = static_cast<uint32_t>(edge.tokens.size());
  node.parent = edge.parent ? Index(*edge.parent) : kNone;
  std::copy(edge.tokens.begin(), edge.tokens.end(), tokens_.begin() + page * size_t{page_tokens_});
  if (node.parent != kNone) {
    Node& parent = nodes_[node.parent];
    CHECK(IsSealed(node.parent) && parent.name == edge.chain) << "not the page before";
    CHECK(!IsIdle(PageId{node.parent})) << "whoever adds a page uses the one before";
    ++parent.children;
  }
  CHECK(!spare_.empty());
  ContentIndex::node_type place = std::move(spare_.back());
  spare_.pop_back();
  place.value() = page;
  node.place = index_.insert(std::move(place));
}

void PrefixTree::Forget(uint32_t page) {
  Node& node = nodes_[page];
  CHECK(IsIdle(PageId{page}) && node.children == 0) << "page " << page << " is needed";
  idle_.Remove(PageId{page});
  if (hints_.Has(PageId{page})) hints_.Take(PageId{page});
  if (IsSealed(page)) RemoveName(page);
  if (checkpoints_ != nullptr) checkpoints_->Forget(PageId{page});
  spare_.push_back(index_.extract(node.place));
  if (node.parent != kNone) --nodes_[node.parent].children;
  node = Node();
  pool_.Release(PageId{page});
}

void PrefixTree::ForgetTailWithin(const PageEdge& edge) {
  // Where a tail is the beginning of something stored, it went; so nothing stands between a tail
  // and what it is the beginning of.
  const auto after = index_.lower_bound(Key{edge.chain, edge.tokens});
  if (after == index_.begin()) return;
  const uint32_t before = *std::prev(after);
  if (IsSealed(before) || nodes_[before].chain != edge.chain) return;
  // In use: somebody copies it at this moment.
  if (!IsIdle(PageId{before})) return;
  if (CommonTokens(KeyOf(before).tokens, edge.tokens) == nodes_[before].tokens) Forget(before);
}

void PrefixTree::AddIdle(PageId page) {
  CHECK(pool_.references(page) == 1);
  idle_.Add(page, ++uses_ | (hints_.Has(page) ? kBehind : 0));
}

void PrefixTree::TakeHint(PageId page) {
  hints_.Take(page);
  if (IsIdle(page)) idle_.Change(page, idle_.KeyOf(page) & ~kBehind);
  if (checkpoints_ != nullptr) checkpoints_->SetHint(page, std::nullopt);
}

void PrefixTree::UseHint(PageId page, base::Duration time) {
  hints_.Use(page, time, now_);
  if (checkpoints_ != nullptr)
    checkpoints_->SetHint(page, hints_.OwnerOf(page));  // it may be newer
}

uint64_t PrefixTree::FirstSlot(const Hash256& name) const {
  // Multiplicative (Knuth, vol. 3, 6.4): the high half depends on all bits.
  return ((name.prefix() ^ salt_) * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1);
}

void PrefixTree::AddName(uint32_t page) {
  const uint64_t mask = slots_.size() - 1;
  uint64_t slot = FirstSlot(nodes_[page].name);
  while (slots_[slot] != kNone) slot = (slot + 1) & mask;
  slots_[slot] = page;
}

void PrefixTree::RemoveName(uint32_t page) {
  const uint64_t mask = slots_.size() - 1;
  uint64_t hole = FirstSlot(nodes_[page].name);
  while (slots_[hole] != page) {
    CHECK(slots_[hole] != kNone) << "page " << page << " has no name";
    hole = (hole + 1) & mask;
  }
  // Linear probing without marks (Knuth, vol. 3, 6.4, algorithm R): what lies behind the hole moves
  // into it, unless its own first slot is behind the hole too.
  slots_[hole] = kNone;
  for (uint64_t slot = (hole + 1) & mask; slots_[slot] != kNone; slot = (slot + 1) & mask) {
    const uint64_t first = FirstSlot(nodes_[slots_[slot]].name);
    if (((slot - first) & mask) < ((slot - hole) & mask)) continue;
    slots_[hole] = slots_[slot];
    slots_[slot] = kNone;
    hole = slot;
  }
}

void PrefixTree::CheckInvariants() const {
  CHECK(stored() + spare_.size() == pool_.total());
  std::vector<uint32_t> children(nodes_.size(), 0);
  uint32_t idle = 0, sealed = 0;
  for (const uint32_t page : index_) {
    const Node& node = nodes_[page];
    CHECK(node.tokens > 0 && node.tokens <= page_tokens_);
    CHECK(*node.place == page);
    CHECK(IsIdle(PageId{page}) == (pool_.references(PageId{page}) == 1)) << "page " << page;
    CHECK(!IsSealed(page) || Find(node.name) == PageId{page}) << "page " << page;
    CHECK(IsSealed(page) || node.children == 0) << "a tail has children";
    idle += IsIdle(PageId{page});
    sealed += IsSealed(page);
    if (node.parent != kNone) ++children[node.parent];
  }
  CHECK(idle == idle_.size());
  CHECK(sealed == slots_.size() - std::count(slots_.begin(), slots_.end(), kNone));
  for (size_t page = 0; page < nodes_.size(); ++page) {
    CHECK(nodes_[page].children == children[page]) << "page " << page;
    CHECK(children[page] == 0 || IsSealed(static_cast<uint32_t>(page)));
    if (checkpoints_ == nullptr || !checkpoints_->Has(PageId{static_cast<uint32_t>(page)}))
      continue;
    CHECK(IsSealed(static_cast<uint32_t>(page))) << "page " << page << " has a checkpoint";
  }
  if (checkpoints_ != nullptr) checkpoints_->CheckInvariants();
  CheckOrder();
}

void PrefixTree::CheckOrder() const {
  hints_.CheckInvariants();
  for (const uint32_t index : index_) {
    const PageId page{index};
    const bool hinted = hints_.Has(page);
    CHECK(!hinted || hints_.EndOf(page) > now_) << "page " << index << " has an old hint";
    CHECK(!IsIdle(page) || (idle_.KeyOf(page) >= kBehind) == hinted) << "page " << index;
    if (checkpoints_ != nullptr && checkpoints_->Has(page)) {
      CHECK(checkpoints_->IsHinted(page) == hinted || !IsIdle(page)) << "page " << index;
    }
    if (nodes_[index].parent == kNone) continue;
    const PageId parent{nodes_[index].parent};
    // A child never stays longer than its parent.
    CHECK(!hinted || hints_.Has(parent)) << "page " << index << " has a hint, its parent none";
    CHECK(!hinted || hints_.EndOf(page) <= hints_.EndOf(parent)) << "page " << index;
    if (!IsIdle(parent)) continue;
    CHECK(IsIdle(page)) << "page " << index << " is used, its parent is not";
    CHECK(idle_.KeyOf(page) < idle_.KeyOf(parent)) << "page " << index << " goes after its parent";
  }
}

}  // namespace plumb::kvcache
