// api/responses_dialect.h
// POST /v1/responses and /v1/responses/input_tokens, OpenAI's: a request to answer, or to count.
// Read next: api/responses_request.h, api/responses_writer.h; what else there is to do with an
// answer that was kept: api/responses_calls.h.
#pragma once

#include <utility>

#include "api/dialect.h"
#include "api/responses_request.h"
#include "api/responses_store.h"
#include "text/tokenizer.h"

namespace plumb::api {

class ResponsesDialect final : public Dialect {
 public:
  // Borrows the tokenizer and the store.
  ResponsesDialect(RequestLimits limits, const text::Tokenizer& tokenizer, ResponsesStore& store)
      : limits_(std::move(limits)), tokenizer_(tokenizer), store_(store) {}

  std::string_view route() const override { return "/v1/responses"; }
  base::Result<ReadBody> Read(std::string_view body, const BodyOrigin& origin) const override;
  std::string_view prompt_field() const override { return "input"; }
  std::string_view length_field() const override { return "max_output_tokens"; }

 private:
  const RequestLimits limits_;
  const text::Tokenizer& tokenizer_;
  ResponsesStore& store_;
};

// The same bodies; says how many tokens the prompt has and generates nothing.
class ResponsesCountDialect final : public Dialect {
 public:
  // Borrows the store.
  ResponsesCountDialect(RequestLimits limits, const ResponsesStore& store)
      : limits_(std::move(limits)), store_(store) {}

  std::string_view route() const override { return "/v1/responses/input_tokens"; }
  base::Result<ReadBody> Read(std::string_view body, const BodyOrigin& origin) const override;
  std::string_view prompt_field() const override { return "input"; }
  std::string_view length_field() const override { return "max_output_tokens"; }

 private:
  const RequestLimits limits_;
  const ResponsesStore& store_;
};

}  // namespace plumb::api
