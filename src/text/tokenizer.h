// text/tokenizer.h
// Text to token ids and back, over the crate `tokenizers` (rust/). Built either from the vocabulary
// that a GGUF file carries or from a tokenizer.json. A model file is untrusted: every id, size and
// count is checked when the tokenizer is built, so that later calls cannot fail by its content.
// Read next: text/detokenizer.h (tokens to whole characters, one token at a time).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

struct plumb_tokenizer;  // rust/include/plumb_rust.h

namespace plumb::text {

using base::TokenId;

// How the vocabulary entry is used; values as in GGUF's tokenizer.ggml.token_type.
enum class TokenKind : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// What a GGUF file says of its tokenizer (keys tokenizer.ggml.*), already copied out of it.
struct VocabularySpec {
  // "gpt2" (byte-level BPE), "llama" (SentencePiece), "gemma4" (BPE on plain text), "bert"
  // (WordPiece); others, such as "t5" and "rwkv", are refused.
  std::string model;
  std::string pre;                  // pre-tokenizer ("llama-bpe", "qwen2", ...); may be empty
  std::vector<std::string> tokens;  // index = id
  std::vector<float> scores;        // empty or tokens.size()
  std::vector<TokenKind> kinds;     // empty or tokens.size()
  std::vector<std::string> merges;  // "left right", by rank
  std::optional<uint32_t> bos, eos, eot, unk, pad, sep, cls, mask;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

// What other files of a Hugging Face folder say of a tokenizer.json. All may be left out.
struct JsonSettings {
  std::optional<std::string> bos, eos;   // by name
  std::vector<uint32_t> end_ids;         // of more tokens that end an answer
  std::optional<bool> add_bos, add_eos;  // around a text, whatever tokenizer.json says
  uint32_t ids_max = 0;  // entries of the model; added tokens beyond are left out; 0 = all are kept
};

// Whether "<|im_start|>" in the text becomes the control token or its characters. Entries that were
// added to a vocabulary without being control tokens ("<think>") are characters with kNone alone,
// which makes no token that the model's own merges do not.
enum class ControlTokens : uint8_t { kAsText, kParse, kNone };

// Immutable after construction. Thread: any.
class Tokenizer {
 public:
  // kInvalidArgument: inconsistent or oversized vocabulary, or a setting that names no token of it;
  // kUnsupported: model or pre not known here (the message names it). A tokenizer.json names no BOS
  // or EOS: where the settings do not either, they are known by name.
  static base::Result<std::unique_ptr<Tokenizer>> FromVocabulary(const VocabularySpec& spec);
  static base::Result<std::unique_ptr<Tokenizer>> FromJson(std::string_view tokenizer_json,
                                                           const JsonSettings& settings = {});
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // The ids of a whole text. `add_special` also adds what the vocabulary says stands around a text
  // (a BOS, say). Bytes for which there is neither an entry nor an unknown token are dropped, as
  // the reference implementations do (SmolLM2 lacks six control characters). kInvalidArgument: not
  // UTF-8, or longer than kTextBytesMax.
  base::Result<std::vector<TokenId>> Encode(std::string_view text, ControlTokens control,
                                            bool add_special) const;

  // A part of a text whose ids do not depend on the parts around it.
  struct Stretch {
    std::string_view text;         // borrowed from the whole
    std::optional<TokenId> token;  // what it spells; nothing: EncodeStretch tells
    bool opens = false;            // it begins the whole, or follows a token
  };
  // The parts of a text: their ids, one after the other, are those of
  // Encode(text, control, /*add_special=*/false). Errors: as there.
  base::Result<std::vector<Stretch>> Cut(std::string_view text, ControlTokens control) const;
  // Of a part that Cut has given for the same `control`.
  base::Result<std::vector<TokenId>> EncodeStretch(const Stretch& stretch,
                                                   ControlTokens control) const;

  // The bytes that a token stands for: not always whole characters. Empty for ids from size() on,
  // and for control tokens but those of text/tool_syntax.h. Borrowed for the tokenizer's life.
  std::string_view TokenBytes(TokenId id) const;
  // The entry as written in the vocabulary ("<|im_end|>"), for people; empty when out of range.
  std::string_view TokenName(TokenId id) const;
  bool IsControl(TokenId id) const;
  // Bytes of the longest control token's spelling that `text` begins with; 0 when with none.
  size_t ControlSpelling(std::string_view text) const;
  // The first place at or after `from` where a control token is spelled, and the bytes of the
  // longest that is; size 0 where there is none.
  struct Spelling {
    size_t place = std::string_view::npos;
    size_t size = 0;
  };
  Spelling FindControl(std::string_view text, size_t from) const;
  // No token stands for more bytes than this: a lower bound on the tokens of a text.
  uint32_t token_bytes_max() const;

  uint32_t size() const;
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  // Every token that ends an answer (EOS, EOT, "<|im_end|>" and the like), ascending.
  std::span<const TokenId> end_tokens() const;

  // The library's handle; for this module alone.
  const ::plumb_tokenizer* rust() const;

  static constexpr uint64_t kTextBytesMax = 16u << 20;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plumb::text
