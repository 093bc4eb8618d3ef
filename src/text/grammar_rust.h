// text/grammar_rust.h
// Grammars as the Rust library compiles them, and what a tokenizer's grammars share. Internal to
// text: others ask text/grammar_compiler.h. Read next: text/grammar_trigger.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plumb_rust.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace plumb::text {

// The trie that masks are computed on, and the tokens' bytes. A resource type, shared by all
// grammars over a tokenizer. Immutable; thread: any. Needs the tokenizer only to be made.
class GrammarVocabulary {
 public:
  // Takes some hundred milliseconds for 128k tokens. kInvalidArgument: no token ends an answer.
  static base::Result<std::shared_ptr<const GrammarVocabulary>> Make(const Tokenizer& tokenizer);
  ~GrammarVocabulary();
  GrammarVocabulary(const GrammarVocabulary&) = delete;
  GrammarVocabulary& operator=(const GrammarVocabulary&) = delete;

  // What `spec` says between its triggers, then `spec.end` as a text or token. Errors: as
  // GrammarCompiler::Compile; too large is also what takes longer than `ms_max`, and kOverloaded
  // that several such are still running.
  base::Result<std::shared_ptr<const Grammar>> Compile(const GrammarSpec& spec,
                                                       uint32_t ms_max) const;

  uint32_t size() const { return static_cast<uint32_t>(begins_.size()) - 1; }
  // Empty for control tokens and from size() on.
  std::string_view TokenBytes(TokenId id) const;
  bool IsEnd(TokenId id) const;
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }
  // The control token of that name.
  std::optional<TokenId> ControlToken(std::string_view name) const;

 private:
  GrammarVocabulary() = default;

  plumb_grammar_vocabulary* handle_ = nullptr;
  std::string bytes_;             // of all tokens
  std::vector<uint32_t> begins_;  // where each token's begin, and the end of the last
  std::vector<TokenId> end_tokens_;
  std::vector<std::pair<std::string, TokenId>> controls_;  // by name
};

// Sets the bits of `mask` below `size`, clears the others.
void AllowAll(uint32_t size, std::span<uint32_t> mask);
// Clears `mask`, then sets the bits of `tokens` that it has.
void AllowOnly(std::span<const TokenId> tokens, std::span<uint32_t> mask);

}  // namespace plumb::text
