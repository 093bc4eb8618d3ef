// api/messages_errors_test.cc
// Statuses, types and words of errors in Anthropic's shape.
#include "api/messages_errors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace plumb::api {
namespace {

using base::Code;
using base::Status;
using nlohmann::json;

struct Case {
  Status status;
  int http_status;
  std::string type;
};

TEST(MessagesErrors, GivesEachCodeItsStatusAndType) {
  const Case cases[] = {
      {base::InvalidArgument("model", "m"), 400, "invalid_request_error"},
      {Status(Code::kUnauthenticated, "m"), 401, "authentication_error"},
      {Status(Code::kForbidden, "m"), 403, "permission_error"},
      {base::NotFound("m"), 404, "not_found_error"},
      {base::InvalidArgument("", "m").WithReason("request_too_large"), 413, "request_too_large"},
      {Status(Code::kQuotaExceeded, "m").WithRetryAfterMs(1500), 429, "rate_limit_error"},
      {Status(Code::kOverloaded, "m").WithRetryAfterMs(1500), 529, "overloaded_error"},
      {Status(Code::kUnavailable, "m"), 503, "api_error"},
      {Status(Code::kDeadline, "m"), 504, "timeout_error"},
      {base::Unsupported("m"), 501, "api_error"},
      {base::Internal("m"), 500, "api_error"},
  };
  for (const Case& c : cases) {
    ApiError error = ErrorFromStatus(c.status);
    error.request_id = "req-1";
    const net::HttpResponse response = MessagesErrorResponse(error);
    EXPECT_EQ(response.status, c.http_status) << c.type;
    const json body = json::parse(response.body);
    EXPECT_EQ(body["type"], "error");
    EXPECT_EQ(body["error"]["type"], c.type);
    EXPECT_EQ(body["error"].size(), 2u);
    EXPECT_EQ(body["request_id"], "req-1");
    EXPECT_EQ(response.headers.Get("Content-Type"), "application/json");
    const bool waits = c.http_status == 429 || c.http_status == 529 || c.http_status == 503;
    EXPECT_EQ(response.headers.Get("Retry-After").has_value(), waits) << c.http_status;
  }
}

TEST(MessagesErrors, SaysTheFieldOnceAndByTheNameItHasHere) {
  const auto message = [](const Status& status) {
    return json::parse(MessagesErrorJson(ErrorFromStatus(status)))["error"]["message"]
        .get<std::string>();
  };
  EXPECT_EQ(message(base::InvalidArgument("a.b", "is wrong")), "a.b: is wrong");
  EXPECT_EQ(message(base::InvalidArgument("a.b", "a.b is wrong")), "a.b is wrong");
  EXPECT_EQ(message(base::InvalidArgument("response_format", "x")), "output_config.format: x");
  EXPECT_EQ(message(base::InvalidArgument("stop", "x")), "stop_sequences: x");
  EXPECT_EQ(
      message(base::InvalidArgument("messages", "12 tokens").WithReason("context_length_exceeded")),
      "prompt is too long: 12 tokens");
  EXPECT_EQ(message(base::InvalidArgument("messages", "prompt is too long: 9 tokens > 8 maximum")
                        .WithReason("context_length_exceeded")),
            "prompt is too long: 9 tokens > 8 maximum");
}

}  // namespace
}  // namespace plumb::api
