// api/testing/byte_vocabulary.h
// Tests only. A tokenizer with one token for each byte and two control tokens, so that a test's
// text is its tokens and characters of several bytes are split over tokens; and a template to go
// with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"
#include "text/jinja_chat_format.h"
#include "text/tokenizer.h"

namespace plumb::api::testing {

constexpr base::TokenId kStartToken{256};  // "<|im_start|>"
constexpr base::TokenId kEndToken{257};    // "<|im_end|>", ends an answer
constexpr uint32_t kByteVocabularySize = 258;

// Byte-level BPE writes byte b as the character U+0000+b where that is printable Latin-1, the
// others in order from U+0100 on (GPT-2's table).
inline text::VocabularySpec ByteVocabulary() {
  text::VocabularySpec spec{.model = "gpt2", .pre = "gpt-2"};
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    const uint32_t code = printable ? byte : next++;
    std::string token;
    if (code < 0x80) {
      token += static_cast<char>(code);
    } else {
      token += static_cast<char>(0xC0 | (code >> 6));
      token += static_cast<char>(0x80 | (code & 0x3F));
    }
    spec.tokens.push_back(token);
    spec.kinds.push_back(text::TokenKind::kNormal);
  }
  for (const char* control : {"<|im_start|>", "<|im_end|>"}) {
    spec.tokens.push_back(control);
    spec.kinds.push_back(text::TokenKind::kControl);
  }
  spec.bos = base::Index(kStartToken);
  spec.eos = base::Index(kEndToken);
  return spec;
}

inline std::unique_ptr<text::Tokenizer> MakeByteTokenizer() {
  return text::Tokenizer::FromVocabulary(ByteVocabulary()).value();
}

// With tokens for filling in the middle, from 258 on: prefix, suffix, middle.
inline std::unique_ptr<text::Tokenizer> MakeFimTokenizer() {
  text::VocabularySpec spec = ByteVocabulary();
  for (const char* control : {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}) {
    spec.tokens.push_back(control);
    spec.kinds.push_back(text::TokenKind::kControl);
  }
  return text::Tokenizer::FromVocabulary(spec).value();
}

constexpr std::string_view kTemplateSource =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

inline std::unique_ptr<text::ChatTemplate> MakeTemplate() {
  return text::ChatTemplate::Compile(kTemplateSource, {.bos_token = "", .eos_token = "<|im_end|>"})
      .value();
}

// Borrows the tokenizer.
inline std::unique_ptr<text::ChatFormat> MakeChatFormat(const text::Tokenizer& tokenizer) {
  return text::JinjaChatFormat::Create(MakeTemplate(), tokenizer).value();
}

// One token per byte; `end` adds the end token.
inline std::vector<base::TokenId> ByteTokens(std::string_view text, bool end = true) {
  std::vector<base::TokenId> tokens;
  for (const char c : text) tokens.push_back(base::TokenId{static_cast<unsigned char>(c)});
  if (end) tokens.push_back(kEndToken);
  return tokens;
}

}  // namespace plumb::api::testing
