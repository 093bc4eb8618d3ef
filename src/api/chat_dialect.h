// api/chat_dialect.h
// POST /v1/chat/completions, OpenAI's. Read next: api/chat_request.h, api/chat_writer.h.
#pragma once

#include <utility>

#include "api/chat_request.h"
#include "api/dialect.h"
#include "text/tokenizer.h"

namespace plumb::api {

class ChatDialect final : public Dialect {
 public:
  // Borrows the tokenizer.
  ChatDialect(RequestLimits limits, const text::Tokenizer& tokenizer)
      : limits_(std::move(limits)), tokenizer_(tokenizer) {}

  std::string_view route() const override { return "/v1/chat/completions"; }
  base::Result<ReadBody> Read(std::string_view body, const BodyOrigin& origin) const override;
  std::string_view prompt_field() const override { return "messages"; }
  std::string_view length_field() const override { return "max_tokens"; }

 private:
  const RequestLimits limits_;
  const text::Tokenizer& tokenizer_;
};

}  // namespace plumb::api
