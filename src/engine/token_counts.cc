// engine/token_counts.cc
// Multiplicative hash, linear probing, at most half full.
#include "engine/token_counts.h"

#include <bit>

#include "base/check.h"

namespace plumb::engine {

void TokenCounts::Reset(uint32_t distinct_max) {
  entries_.clear();
  entries_.reserve(distinct_max);
  prompt_entries_ = 0;
  slots_.assign(std::bit_ceil(uint64_t{2} * distinct_max + 2), 0);
}

TokenCounts::Entry& TokenCounts::Find(TokenId token) {
  const size_t slot = SlotOf(token);
  if (slots_[slot] != 0) return entries_[slots_[slot] - 1];
  CHECK(entries_.size() < entries_.capacity()) << "more than " << entries_.capacity() << " tokens";
  entries_.push_back({token, 0});
  slots_[slot] = static_cast<uint32_t>(entries_.size());
  return entries_.back();
}

void TokenCounts::RemoveGenerated(TokenId token) {
  const size_t slot = SlotOf(token);
  CHECK(slots_[slot] != 0) << "a token that was not added";
  const size_t index = slots_[slot] - 1;
  CHECK(entries_[index].generated > 0);
  if (--entries_[index].generated > 0 || index < prompt_entries_) return;
  // It came last into the table, so that no other token's way to its slot leads over this one.
  CHECK(index + 1 == entries_.size()) << "tokens are taken back in reverse";
  entries_.pop_back();
  slots_[slot] = 0;
}

size_t TokenCounts::SlotOf(TokenId token) const {
  CHECK(!slots_.empty()) << "Reset comes first";
  const uint64_t mask = slots_.size() - 1;
  // 2^64 / golden ratio (Knuth, vol. 3, 6.4): neighbouring ids spread over the table.
  uint64_t slot = (base::Index(token) * 0x9E3779B97F4A7C15u >> 32) & mask;
  while (slots_[slot] != 0 && entries_[slots_[slot] - 1].token != token) slot = (slot + 1) & mask;
  return slot;
}

}  // namespace plumb::engine
