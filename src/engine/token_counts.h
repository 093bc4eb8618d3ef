// engine/token_counts.h
// Which tokens a sequence holds, for the penalties: how often each was generated, and whether it
// stands in the prompt. A small open-addressing table sized when the sequence starts, since a dense
// array per sequence would cost the vocabulary's size each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"

namespace plumb::engine {

using base::TokenId;

// Thread: one at a time (engine).
class TokenCounts {
 public:
  struct Entry {
    TokenId token;
    uint32_t generated;  // 0: only in the prompt
  };

  // Room for `distinct_max` different tokens, and none in it. Allocates; nothing else does.
  void Reset(uint32_t distinct_max);
  // The prompt's tokens come first.
  void AddPrompt(TokenId token) {
    Find(token);
    prompt_entries_ = entries_.size();
  }
  void AddGenerated(TokenId token) { ++Find(token).generated; }
  // Takes back the latest AddGenerated that was not taken back yet, which was of `token` (CHECK).
  void RemoveGenerated(TokenId token);

  // Each token once, by first appearance; valid until the next Add.
  std::span<const Entry> entries() const { return entries_; }

 private:
  Entry& Find(TokenId token);  // adds it when missing
  // Where the token's index is, or would be.
  size_t SlotOf(TokenId token) const;

  std::vector<Entry> entries_;  // capacity distinct_max
  size_t prompt_entries_ = 0;   // the first so many stand in the prompt
  std::vector<uint32_t>
      slots_;  // [power of two >= 2 * distinct_max] index + 1 into entries_; 0 = free
};

}  // namespace plumb::engine
