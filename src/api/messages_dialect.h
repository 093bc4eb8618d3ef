// api/messages_dialect.h
// POST /v1/messages and POST /v1/messages/count_tokens, Anthropic's. Read next:
// api/messages_request.h, api/messages_writer.h.
#pragma once

#include <string>
#include <utility>

#include "api/dialect.h"
#include "api/messages_errors.h"
#include "api/messages_request.h"

namespace plumb::api {

class MessagesDialect final : public Dialect {
 public:
  // `use` decides which of the two it is.
  MessagesDialect(RequestLimits limits, MessagesUse use) : limits_(std::move(limits)), use_(use) {}

  std::string_view route() const override {
    return use_ == MessagesUse::kCount ? "/v1/messages/count_tokens" : "/v1/messages";
  }
  // A version of the API is a date, or missing.
  base::Status CheckHeaders(const net::HttpHeaders& headers) const override;
  base::Result<ReadBody> Read(std::string_view body, const BodyOrigin& origin) const override;
  net::HttpResponse (*error_shape() const)(const ApiError&) override {
    return MessagesErrorResponse;
  }
  net::HttpHeaders LimitHeaders(const tenancy::LimitReport& report,
                                int64_t unix_seconds) const override {
    return AnthropicLimitHeaders(report, unix_seconds);
  }
  std::string_view prompt_field() const override { return "messages"; }
  std::string_view length_field() const override { return "max_tokens"; }
  std::string TooLongMessage(uint64_t prompt_tokens, uint64_t context_max) const override;

 private:
  const RequestLimits limits_;
  const MessagesUse use_;
};

}  // namespace plumb::api
