// api/tokenize_dialect.h
// POST /v1/tokenize and POST /v1/detokenize, in vLLM's shapes: a text or a conversation to the
// tokens that the model would get, and tokens back to text. Read on a worker and bounded like
// requests for answers, since a long text takes its time. Read next: api/generations.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/dialect.h"
#include "text/tokenizer.h"

namespace plumb::api {

class TokenizeDialect final : public Dialect {
 public:
  // Borrows the tokenizer. `context_max` is told as "max_model_len".
  TokenizeDialect(RequestLimits limits, uint32_t context_max, const text::Tokenizer& tokenizer)
      : limits_(std::move(limits)), context_max_(context_max), tokenizer_(tokenizer) {}

  std::string_view route() const override { return "/v1/tokenize"; }
  base::Result<ReadBody> Read(std::string_view body, const BodyOrigin& origin) const override;
  std::string_view prompt_field() const override { return "messages"; }
  std::string_view length_field() const override { return "messages"; }

 private:
  std::string Answer(std::span<const base::TokenId> tokens, bool strings) const;

  const RequestLimits limits_;
  const uint32_t context_max_;
  const text::Tokenizer& tokenizer_;
};

class DetokenizeDialect final : public Dialect {
 public:
  // Borrows the tokenizer.
  DetokenizeDialect(RequestLimits limits, const text::Tokenizer& tokenizer)
      : limits_(std::move(limits)), tokenizer_(tokenizer) {}

  std::string_view route() const override { return "/v1/detokenize"; }
  base::Result<ReadBody> Read(std::string_view body, const BodyOrigin& origin) const override;
  std::string_view prompt_field() const override { return "tokens"; }
  std::string_view length_field() const override { return "tokens"; }

 private:
  const RequestLimits limits_;
  const text::Tokenizer& tokenizer_;
};

// The names of every field that has a meaning in their bodies.
std::vector<std::string_view> TokenizeFieldNames();
std::vector<std::string_view> DetokenizeFieldNames();

}  // namespace plumb::api
