// text/grammar.h
// What an answer may be: a regular expression, JSON Schema, context-free grammar or list of
// choices, compiled against a tokenizer into masks of the tokens that may come next, over the crate
// llguidance (rust/). Sources are hostile: sizes, depth and compile time are bounded, and what
// cannot be enforced is refused by name, never left out.
// Read next: text/grammar_compiler.h (the bounded cache), docs/structured_output.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

namespace plumb::text {

using base::TokenId;

enum class GrammarKind : uint8_t {
  kJsonSchema,  // source: a JSON Schema, 2020-12; whitespace as documented, bounded
  kJsonObject,  // source unused: any JSON object
  kRegex,       // source: the whole answer matches it
  kLark,        // source: Lark, as llguidance reads it
  kEbnf,        // source: GBNF-like EBNF (root ::= ...)
  kChoice,      // choices: the answer is one of them
  kCalls,       // source: calls of tools, as text/tool_grammar.h writes it
};

// With neither trigger the grammar is the whole answer. With `begin`, text is free until it was
// written, then the grammar holds: to the end of the answer when `end` is empty, else until the
// grammar and `end` were written, after which text is free again until the next `begin`.
struct GrammarSpec {
  GrammarKind kind = GrammarKind::kJsonObject;
  std::string source;
  std::vector<std::string> choices;
  std::string begin;  // a text, or the name of a control token ("</think>"); empty: at once
  std::string end;    // a text, or the name of a control token; only with `begin`

  bool operator==(const GrammarSpec&) const = default;
};

class GrammarState;

// Immutable. Thread: any. Lives by shared_ptr; keeps alive what it needs of the tokenizer.
class Grammar {
 public:
  virtual ~Grammar() = default;
  virtual std::unique_ptr<GrammarState> NewState() const = 0;
};

// Where one answer stands in its grammar: a function of the grammar and the accepted tokens alone.
// Thread: one at a time. No call blocks; each is bounded in steps and in processor time, some
// milliseconds. An overrun is kInvalidArgument, reason "grammar_too_large", from every call that
// can fail and for good: the answer cannot go on, which is its grammar's fault.
class GrammarState {
 public:
  virtual ~GrammarState() = default;

  // Bit t of mask[t / 32]: token t may come next. `mask` has (vocabulary + 31) / 32 words; ids of
  // the model beyond the tokenizer get 0. End tokens are allowed where the answer may end. At least
  // one bit is set.
  virtual base::Status FillMask(std::span<uint32_t> mask) = 0;

  // The next token, which the mask allows (else kInvalidArgument, field "token", and nothing
  // changed).
  virtual base::Status Accept(TokenId token) = 0;
  // Takes back the newest `tokens` accepted ones; no more than were accepted (CHECK).
  virtual void Rollback(uint32_t tokens) = 0;

  // How many of `tokens`, from the first, could be accepted in turn. Changes nothing.
  virtual uint32_t CountAllowed(std::span<const TokenId> tokens) = 0;
  // Appends the tokens that are sure to follow, each the only one its mask allows; at most `max`.
  virtual void AppendForced(uint32_t max, std::vector<TokenId>& out) = 0;

  // Nothing but an end token may come: the answer is whole and may stop without one.
  virtual bool Complete() = 0;
};

}  // namespace plumb::text
