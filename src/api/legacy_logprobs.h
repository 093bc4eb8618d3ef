// api/legacy_logprobs.h
// Log-probabilities as POST /v1/completions has them: four columns, of which `text_offset` says
// where in the choice's text each token begins, in characters. Read next: api/completion_writer.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/json_writer.h"
#include "engine/request.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace plumb::api {

// Characters (code points) of UTF-8.
uint64_t CountCharacters(std::string_view text);

// The text of tokens, control tokens as they are spelled. Not always UTF-8.
std::string SpellTokens(std::span<const base::TokenId> tokens, const text::Tokenizer& tokenizer);

// Where each token of a prompt begins in its text. What the text does not show (a BOS) has no
// width; a token that begins within a character has the offset of that character.
std::vector<uint64_t> PromptOffsets(std::span<const base::TokenId> tokens, std::string_view text,
                                    const text::Tokenizer& tokenizer);

// Where each generated token begins. A value type that borrows the tokenizer.
class AnswerOffsets {
 public:
  // `start`: characters before the answer.
  AnswerOffsets(const text::Tokenizer& tokenizer, uint64_t start)
      : detokenizer_(tokenizer), characters_(start) {}
  uint64_t Next(base::TokenId token);

 private:
  text::Detokenizer detokenizer_;
  uint64_t characters_;
};

// Rows go in, columns come out. Borrows the tokenizer.
class LegacyLogprobs {
 public:
  explicit LegacyLogprobs(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  LegacyLogprobs(const LegacyLogprobs&) = delete;
  LegacyLogprobs& operator=(const LegacyLogprobs&) = delete;

  // The first token of a prompt, which nothing predicts.
  void AddFirst(base::TokenId token, uint64_t offset);
  // Alternatives and the token itself, under their texts; of those with one text the first.
  void Add(const engine::TokenLogprob& logprob, uint64_t offset);
  // {"tokens", "token_logprobs", "top_logprobs", "text_offset"}.
  std::string Json() const;

 private:
  // A token that is no whole characters is shown as OpenAI does: "bytes:\xe2\x82".
  std::string NameOf(base::TokenId token) const;

  const text::Tokenizer& tokenizer_;
  std::string tokens_, logprobs_, tops_, offsets_;  // of JSON arrays, without brackets
  JsonWriter tokens_json_{tokens_}, logprobs_json_{logprobs_}, tops_json_{tops_},
      offsets_json_{offsets_};
};

}  // namespace plumb::api
