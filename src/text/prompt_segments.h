// text/prompt_segments.h
// A prompt in two colours: what a format writes itself, and what it was given. Only the first may
// hold special tokens, so a message that spells one cannot forge the turns of a conversation, and
// no text has to be escaped. Between two special tokens the text is encoded in one piece, whatever
// its colours are, since merges cross them. Read next: text/deepseek_v41_prompt.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/token_cache.h"
#include "text/tokenizer.h"

namespace plumb::text {

struct PromptSegment {
  enum class Kind : uint8_t { kTemplate, kText };
  Kind kind;
  std::string text;
};

// Appends, and joins what has the same colour.
class PromptWriter {
 public:
  PromptWriter& Template(std::string_view text) {
    return Append(PromptSegment::Kind::kTemplate, text);
  }
  PromptWriter& Text(std::string_view text) { return Append(PromptSegment::Kind::kText, text); }
  uint64_t size() const { return size_; }
  std::vector<PromptSegment> Take() { return std::move(segments_); }

 private:
  PromptWriter& Append(PromptSegment::Kind kind, std::string_view text);

  std::vector<PromptSegment> segments_;
  uint64_t size_ = 0;  // bytes
};

// Special tokens by name, each with its id. A value type, immutable. Thread: any.
class SpecialTokens {
 public:
  // Those of `names` that the tokenizer has.
  SpecialTokens(const Tokenizer& tokenizer, std::span<const std::string_view> names);

  bool Has(std::string_view name) const { return ids_.contains(name); }
  // The name that stands first in `text` (the longest, of several at one place) and where; npos.
  struct Found {
    size_t place = std::string_view::npos;
    std::string_view name;
  };
  Found Find(std::string_view text) const;

  // The ids of segments. kInvalidArgument, field "messages": a text is not UTF-8, or so long that
  // the tokenizer refuses it; kUnsupported: a template names a token that this tokenizer lacks.
  base::Result<std::vector<TokenId>> Encode(const Tokenizer& tokenizer,
                                            std::span<const PromptSegment> segments,
                                            const TokenScope& scope = {}) const;

 private:
  std::vector<std::string_view> names_;      // all that templates may name
  std::map<std::string_view, TokenId> ids_;  // of those that there are
  std::vector<TokenId> sorted_;              // the same ids, ascending
};

// kInvalidArgument (reason context_length_exceeded): so many bytes are more than `tokens_max`
// tokens, however they are encoded.
base::Status CheckPromptSize(uint64_t bytes, const Tokenizer& tokenizer, uint32_t tokens_max);

}  // namespace plumb::text
