// text/grammar_testing.h
// Tests only. A vocabulary of all bytes, some longer tokens such as models have, and control
// tokens; texts as its tokens in two ways; and a grammar compiled for it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/grammar_compiler.h"
#include "text/tokenizer.h"

namespace plumb::text::testing {

// The character that GPT-2's byte-level BPE writes for a byte: itself where that is printable
// Latin-1, the others in order from U+0100 on.
inline std::string ByteLevel(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto printable = [](uint32_t byte) {
      return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    };
    const uint32_t byte = static_cast<unsigned char>(c);
    uint32_t code = byte;
    if (!printable(byte)) {
      code = 256;
      for (uint32_t before = 0; before < byte; ++before) code += printable(before) ? 0 : 1;
    }
    if (code >= 0x80) out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(code >= 0x80 ? 0x80 | (code & 0x3F) : code);
  }
  return out;
}

inline std::unique_ptr<Tokenizer> MakeGrammarTokenizer() {
  VocabularySpec spec{.model = "gpt2", .pre = "gpt-2"};
  const auto add = [&spec](std::string token, TokenKind kind) {
    spec.tokens.push_back(std::move(token));
    spec.kinds.push_back(kind);
  };
  for (int byte = 0; byte < 256; ++byte)
    add(ByteLevel(std::string(1, static_cast<char>(byte))), TokenKind::kNormal);
  for (const char* longer :
       {"{\"",  "\":", "\": ", "\",", "\", \"", "\"}",   "}\n",     " \"",  "true", "false",
        "null", "12",  "123",  "0.",  "ab",     "abc",   "the",     " the", "\n  ", "\n    ",
        "[[",   "]]",  "],",   "é",   "日本",   "hink>", "</",      "k>{",  "ll>",  "name",
        "```",  "-1",  "e+",   "\\n", "\\\"",   "  ",    "        "})
    add(ByteLevel(longer), TokenKind::kNormal);
  for (const char* control : {"<|im_start|>", "<|im_end|>", "<|eot|>", "<|tool|>", "<|/tool|>"})
    add(control, TokenKind::kControl);
  for (uint32_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.tokens[id] == "<|im_start|>") spec.bos = id;
    if (spec.tokens[id] == "<|im_end|>") spec.eos = id;
  }
  return Tokenizer::FromVocabulary(spec).value();
}

// One token for each byte.
inline std::vector<TokenId> ByteTokens(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char c : text) tokens.push_back(TokenId{static_cast<unsigned char>(c)});
  return tokens;
}

// The longest token at each place.
inline std::vector<TokenId> LongestTokens(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    TokenId best{static_cast<unsigned char>(text[0])};
    for (uint32_t id = 256; id < tokenizer.size(); ++id) {
      const std::string_view bytes = tokenizer.TokenBytes(TokenId{id});
      if (text.starts_with(bytes) && bytes.size() > tokenizer.TokenBytes(best).size())
        best = TokenId{id};
    }
    tokens.push_back(best);
    text.remove_prefix(tokenizer.TokenBytes(best).size());
  }
  return tokens;
}

inline TokenId ControlToken(const Tokenizer& tokenizer, std::string_view name) {
  for (uint32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.TokenName(TokenId{id}) == name) return TokenId{id};
  CHECK(false) << name;
  return TokenId{0};
}

inline std::vector<uint32_t> MaskOf(GrammarState& state, const Tokenizer& tokenizer) {
  std::vector<uint32_t> mask((tokenizer.size() + 31) / 32);
  const base::Status filled = state.FillMask(mask);
  CHECK(filled.ok()) << filled.ToString();
  return mask;
}

inline bool Allows(const std::vector<uint32_t>& mask, TokenId token) {
  return (mask[base::Index(token) / 32] >> (base::Index(token) % 32) & 1) != 0;
}

// Whether an answer of exactly these tokens, and then an end token, is allowed, mask by mask.
inline bool TakesWhole(const Grammar& grammar, const Tokenizer& tokenizer,
                       const std::vector<TokenId>& tokens) {
  const auto state = grammar.NewState();
  for (const TokenId token : tokens) {
    if (!Allows(MaskOf(*state, tokenizer), token)) return false;
    const base::Status accepted = state->Accept(token);
    CHECK(accepted.ok()) << accepted.ToString();
  }
  return Allows(MaskOf(*state, tokenizer), tokenizer.end_tokens()[0]);
}

// The same for a text, which must not depend on how it is cut into tokens.
inline bool Takes(const Grammar& grammar, const Tokenizer& tokenizer, std::string_view text) {
  const bool bytes = TakesWhole(grammar, tokenizer, ByteTokens(text));
  const bool longest = TakesWhole(grammar, tokenizer, LongestTokens(tokenizer, text));
  CHECK(bytes == longest) << text;
  return bytes;
}

}  // namespace plumb::text::testing
