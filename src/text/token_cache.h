// text/token_cache.h
// Remembers the ids of the parts of prompts (Tokenizer::Cut), so that of a conversation that comes
// again with one more turn only that turn is tokenised. What is remembered is named by BLAKE3 over
// the caller's isolation key and the text: equal names are equal texts, no text is kept, and how
// long an answer takes tells nobody what another caller has sent.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "base/result.h"
#include "text/tokenizer.h"

namespace plumb::text {

// A resource type; borrows its tokenizer. Bounded: when it is full, what was not asked for longest
// goes. Thread: any.
class TokenCache {
 public:
  // `bytes_max`: of ids and what it takes to find them; 0 remembers nothing.
  TokenCache(const Tokenizer& tokenizer, uint64_t bytes_max)
      : tokenizer_(tokenizer), bytes_max_(bytes_max) {}
  TokenCache(const TokenCache&) = delete;
  TokenCache& operator=(const TokenCache&) = delete;

  // What the tokenizer's Encode gives without `add_special`, ids and errors alike, whatever is
  // remembered. Callers of equal `isolation` share.
  base::Result<std::vector<TokenId>> Encode(std::string_view text, ControlTokens control,
                                            const base::Hash256& isolation);

  // Counts since the start, and what is held; a snapshot. Texts too short to be looked for count as
  // not found.
  struct Stats {
    uint64_t found_bytes = 0;  // of text
    uint64_t encoded_bytes = 0;
    uint64_t held_bytes = 0;
    uint64_t entries = 0;
  };
  Stats stats() const;

  // Looking for a shorter text takes longer than encoding it.
  static constexpr size_t kTextBytesMin = 32;

 private:
  struct Entry {
    base::Hash256 name;
    std::vector<TokenId> tokens;
  };
  struct PrefixHash {
    size_t operator()(const base::Hash256& hash) const { return hash.prefix(); }
  };
  static uint64_t BytesOf(const Entry& entry);

  // Appends what is remembered under that name; false when nothing is.
  bool Find(const base::Hash256& name, size_t text_bytes, std::vector<TokenId>& tokens);
  void Remember(const base::Hash256& name, std::span<const TokenId> tokens);

  const Tokenizer& tokenizer_;
  const uint64_t bytes_max_;
  mutable base::Mutex mutex_;
  std::list<Entry> entries_ GUARDED_BY(mutex_);  // the one asked for last stands first
  std::unordered_map<base::Hash256, std::list<Entry>::iterator, PrefixHash> index_
      GUARDED_BY(mutex_);
  Stats stats_ GUARDED_BY(mutex_);
};

// Whose texts a format encodes, and where their ids are remembered. A value type that borrows.
struct TokenScope {
  TokenCache* cache = nullptr;  // of the format's own tokenizer; null: nothing is remembered
  base::Hash256 isolation;      // engine::Request
};

// Tokenizer::Encode without `add_special`, through the scope's cache where it has one.
base::Result<std::vector<TokenId>> EncodeIn(const TokenScope& scope, const Tokenizer& tokenizer,
                                            std::string_view text, ControlTokens control);

}  // namespace plumb::text
