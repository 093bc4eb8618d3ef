// text/fim.h
// Filling in the middle: the prompt that makes a model write what stands between two texts. Models
// that learned it have control tokens for it; which ones, and in which order the texts go, is the
// table in fim.cc.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace plumb::text {

// A value type that borrows its tokenizer. Immutable. Thread: any.
class FimFormat {
 public:
  // Nothing when the vocabulary has no such tokens.
  static std::optional<FimFormat> Find(const Tokenizer& tokenizer);

  // The prompt whose answer stands between the texts. What they say stays text: a control token's
  // name in them is its characters. kInvalidArgument: not UTF-8, or longer than a tokenizer takes.
  base::Result<std::vector<TokenId>> Encode(std::string_view prefix, std::string_view suffix) const;

  // What ends such an answer besides the model's end tokens: the format's own tokens, and what
  // begins another file. Ascending, at most kEndsMax.
  const std::vector<TokenId>& ends() const { return ends_; }
  static constexpr size_t kEndsMax = 8;

 private:
  struct Family;
  static const Family kFamilies[];

  explicit FimFormat(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  const Tokenizer* tokenizer_;
  TokenId prefix_{};
  TokenId suffix_{};
  std::optional<TokenId> middle_;
  bool suffix_first_ = false;
  std::vector<TokenId> ends_;
};

}  // namespace plumb::text
