// api/testing/deepseek_vocabulary.h
// Tests only. A tokenizer with one token for each byte, ids as in byte_vocabulary.h, and the
// special tokens of DeepSeek-V4.1.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/testing/byte_vocabulary.h"
#include "text/deepseek_v41_format.h"
#include "text/deepseek_v41_prompt.h"
#include "text/tokenizer.h"

namespace plumb::api::testing {

// "<｜end▁of▁sentence｜>" is kEndToken, so ByteTokens ends answers of this one too.
inline std::unique_ptr<text::Tokenizer> MakeDeepseekTokenizer() {
  using nlohmann::json;
  const json level = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  json vocabulary = json::object();
  const text::VocabularySpec bytes = ByteVocabulary();
  for (uint32_t byte = 0; byte < 256; ++byte) vocabulary[bytes.tokens[byte]] = byte;
  json added = json::array();
  for (const std::string_view name : text::kDeepseekV41Specials) {
    // Those that the model never has to show.
    const bool special = name.find("sentence") != name.npos || name.find("image") != name.npos;
    added.push_back({{"id", 256 + added.size()},
                     {"content", name},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
  }
  const json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", level},
      {"post_processor", nullptr},
      {"decoder", level},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
  return text::Tokenizer::FromJson(tokenizer.dump(), {.eos = "<｜end▁of▁sentence｜>"}).value();
}

inline std::unique_ptr<text::ChatFormat> MakeDeepseekFormat(const text::Tokenizer& tokenizer) {
  return text::DeepseekV41Format::Create(tokenizer).value();
}

}  // namespace plumb::api::testing
