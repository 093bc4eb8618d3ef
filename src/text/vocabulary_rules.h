// text/vocabulary_rules.h
// What a vocabulary leaves unsaid, decided: which tokens stand around a text, which end an answer,
// which are control tokens. And the checks that make it safe to use. Internal to text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace plumb::text {

// What a vocabulary may ask of us; beyond is refused. The largest in use are near 2^18 tokens,
// 2^19 merges and 1 KiB a token.
constexpr uint64_t kTokensMax = 1u << 20;
constexpr uint64_t kMergesMax = 1u << 21;
constexpr uint64_t kTokenTextBytesMax = 4096;
constexpr uint64_t kVocabularyBytesMax = 256u << 20;  // tokens and merges together

struct VocabularyRules {
  std::vector<TokenKind> kinds;  // one per token
  std::optional<uint32_t> bos, eos, unknown;
  std::vector<uint32_t> before, after;  // around a text, when specials are asked for
  std::vector<TokenId> end_tokens;      // ascending
  bool add_space_prefix = false;        // model "llama" only
};

// kInvalidArgument: counts that disagree or exceed the maxima above, an id out of range, a score
// that is not a number, or a special token that is asked for and not there.
base::Result<VocabularyRules> DecideVocabulary(const VocabularySpec& spec);

// Whether a control token of this name ends an answer in every model that has it.
bool IsEndName(std::string_view name);
// Drops "<|end|>" where it only ends a part of an answer, as its companions in `names` show.
bool EndOnlyEndsAPart(std::span<const std::string_view> end_names);
// Ranks of well-known BOS and EOS names, for vocabularies that do not say; 0 = not one, higher
// wins.
uint32_t BosNameRank(std::string_view name);
uint32_t EosNameRank(std::string_view name);

}  // namespace plumb::text
