// text/token_cache.cc
// See token_cache.h. The lock is held to look up and to copy ids, never while hashing or encoding:
// two callers who miss the same text both encode it, and the second remembers nothing new.
#include "text/token_cache.h"

#include <array>
#include <iterator>
#include <utility>

namespace plumb::text {
namespace {

// What an entry takes besides its ids: its node in the list and in the index, and the allocator's
// share.
constexpr uint64_t kEntryBytes = 256;
// A text of more than this share of the cache would push out much to be kept for one caller.
constexpr uint64_t kEntryShareMax = 4;

// The parts before the text have fixed lengths, so that no two of (isolation, control, opens, text)
// have the same bytes.
base::Hash256 NameOf(const base::Hash256& isolation, const Tokenizer::Stretch& stretch,
                     ControlTokens control) {
  constexpr std::string_view kTag = "plumb.tokens.1";
  const std::array<uint8_t, 2> how = {static_cast<uint8_t>(control),
                                      static_cast<uint8_t>(stretch.opens)};
  return base::Blake3({std::as_bytes(std::span(kTag)), isolation.view(),
                       std::as_bytes(std::span(how)), std::as_bytes(std::span(stretch.text))});
}

}  // namespace

uint64_t TokenCache::BytesOf(const Entry& entry) {
  return kEntryBytes + entry.tokens.size() * sizeof(TokenId);
}

base::Result<std::vector<TokenId>> TokenCache::Encode(std::string_view text, ControlTokens control,
                                                      const base::Hash256& isolation) {
  ASSIGN_OR_RETURN(const std::vector<Tokenizer::Stretch> stretches, tokenizer_.Cut(text, control));
  std::vector<TokenId> tokens;
  tokens.reserve(text.size() / 4 + stretches.size());
  for (const Tokenizer::Stretch& stretch : stretches) {
    if (stretch.token) {
      tokens.push_back(*stretch.token);
      continue;
    }
    const bool looks = bytes_max_ > 0 && stretch.text.size() >= kTextBytesMin;
    const base::Hash256 name = looks ? NameOf(isolation, stretch, control) : base::Hash256{};
    if (looks && Find(name, stretch.text.size(), tokens)) continue;
    ASSIGN_OR_RETURN(const std::vector<TokenId> fresh, tokenizer_.EncodeStretch(stretch, control));
    tokens.insert(tokens.end(), fresh.begin(), fresh.end());
    if (looks) Remember(name, fresh);
    base::MutexLock lock(mutex_);
    stats_.encoded_bytes += stretch.text.size();
  }
  return tokens;
}

bool TokenCache::Find(const base::Hash256& name, size_t text_bytes, std::vector<TokenId>& tokens) {
  base::MutexLock lock(mutex_);
  const auto found = index_.find(name);
  if (found == index_.end()) return false;
  entries_.splice(entries_.begin(), entries_, found->second);
  const std::vector<TokenId>& kept = found->second->tokens;
  tokens.insert(tokens.end(), kept.begin(), kept.end());
  stats_.found_bytes += text_bytes;
  return true;
}

void TokenCache::Remember(const base::Hash256& name, std::span<const TokenId> tokens) {
  Entry entry{name, {tokens.begin(), tokens.end()}};
  const uint64_t bytes = BytesOf(entry);
  if (bytes > bytes_max_ / kEntryShareMax) return;
  base::MutexLock lock(mutex_);
  if (index_.contains(name)) return;
  entries_.push_front(std::move(entry));
  index_.emplace(name, entries_.begin());
  stats_.held_bytes += bytes;
  while (stats_.held_bytes > bytes_max_) {
    stats_.held_bytes -= BytesOf(entries_.back());
    index_.erase(entries_.back().name);
    entries_.pop_back();
  }
  stats_.entries = entries_.size();
}

TokenCache::Stats TokenCache::stats() const {
  base::MutexLock lock(mutex_);
  return stats_;
}

base::Result<std::vector<TokenId>> EncodeIn(const TokenScope& scope, const Tokenizer& tokenizer,
                                            std::string_view text, ControlTokens control) {
  if (scope.cache != nullptr) return scope.cache->Encode(text, control, scope.isolation);
  return tokenizer.Encode(text, control, /*add_special=*/false);
}

}  // namespace plumb::text
