// api/embedding_dialect.h
// POST /v1/embeddings, in OpenAI's shape: what the served model's final hidden states say of each
// input, as a vector of length 1. Read next: api/embedding_request.h, engine/pooling.h (what is
// computed), api/prompt_feeds.h (how many inputs at once).
#pragma once

#include <string>
#include <utility>

#include "api/dialect.h"
#include "api/embedding_request.h"

namespace plumb::api {

class EmbeddingDialect final : public Dialect {
 public:
  EmbeddingDialect(RequestLimits limits, EmbeddingOptions options)
      : limits_(std::move(limits)), options_(options) {}

  std::string_view route() const override { return "/v1/embeddings"; }
  base::Result<ReadBody> Read(std::string_view body, const BodyOrigin& origin) const override;
  std::string_view prompt_field() const override { return "input"; }
  std::string_view length_field() const override { return "input"; }
  std::string TooLongMessage(uint64_t prompt_tokens, uint64_t context_max) const override;

 private:
  const RequestLimits limits_;
  const EmbeddingOptions options_;
};

}  // namespace plumb::api
