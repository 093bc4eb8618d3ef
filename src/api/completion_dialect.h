// api/completion_dialect.h
// POST /v1/completions, OpenAI's older API: the model goes on with a text as it stands. Read next:
// api/completion_request.h, api/completion_writer.h.
#pragma once

#include <optional>
#include <utility>

#include "api/completion_request.h"
#include "api/dialect.h"
#include "text/fim.h"
#include "text/tokenizer.h"

namespace plumb::api {

class CompletionDialect final : public Dialect {
 public:
  // Borrows the tokenizer.
  CompletionDialect(RequestLimits limits, const text::Tokenizer& tokenizer)
      : limits_(std::move(limits)), tokenizer_(tokenizer), fim_(text::FimFormat::Find(tokenizer)) {}

  std::string_view route() const override { return "/v1/completions"; }
  base::Result<ReadBody> Read(std::string_view body, const BodyOrigin& origin) const override;
  std::string_view prompt_field() const override { return "prompt"; }
  std::string_view length_field() const override { return "max_tokens"; }

 private:
  // Makes each prompt one whose answer stands before the suffix.
  base::Status ApplySuffix(CompletionRequest& request) const;

  const RequestLimits limits_;
  const text::Tokenizer& tokenizer_;
  const std::optional<text::FimFormat> fim_;
};

}  // namespace plumb::api
