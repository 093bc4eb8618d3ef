// api/errors.cc
// See errors.h.
#include "api/errors.h"

#include <algorithm>
#include <utility>

#include "api/json_writer.h"

namespace plumb::api {

using base::Code;
using base::Status;

namespace {

constexpr std::string_view kHidden =
    "the server failed to answer; this is its fault and was logged under the request id";

int HttpStatusOf(Code code) {
  switch (code) {
    case Code::kOk:
      return 200;
    case Code::kInvalidArgument:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kForbidden:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kQuotaExceeded:
      return 429;
    case Code::kOverloaded:
      return 503;
    case Code::kCancelled:
      return 499;
    case Code::kDeadline:
      return 504;
    case Code::kUnavailable:
      return 503;
    case Code::kCorrupt:
      return 500;
    case Code::kUnsupported:
      return 501;
    case Code::kInternal:
      return 500;
  }
  return 500;
}

// Where the reason says more than the code: those that HTTP has a status of its own for.
int HttpStatusOf(const Status& status) {
  constexpr std::pair<std::string_view, int> kReasons[] = {
      {"request_too_large", 413},
      {"idempotency_key_in_use", 409},
      {"idempotency_key_reused", 422},
  };
  for (const auto& [reason, http_status] : kReasons)
    if (status.reason() == reason) return http_status;
  return HttpStatusOf(status.code());
}

std::string_view TypeOf(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return http_status >= 500 ? "server_error" : "invalid_request_error";
  }
}

// The code when the Status gives no finer reason.
std::string_view CodeOf(Code code) {
  switch (code) {
    case Code::kUnauthenticated:
      return "invalid_api_key";
    case Code::kForbidden:
      return "forbidden";
    case Code::kNotFound:
      return "not_found";
    case Code::kQuotaExceeded:
      return "rate_limit_exceeded";
    case Code::kOverloaded:
      return "overloaded";
    case Code::kCancelled:
      return "cancelled";
    case Code::kDeadline:
      return "deadline_exceeded";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kCorrupt:
    case Code::kInternal:
      return "internal_error";
    default:
      return "";
  }
}

}  // namespace

ApiError ErrorFromStatus(const Status& status) {
  ApiError error;
  error.http_status = HttpStatusOf(status);
  error.type = TypeOf(error.http_status);
  error.param = status.field();
  error.code = status.reason().empty() ? CodeOf(status.code()) : status.reason();
  error.retry_after_ms = status.retry_after_ms();
  const bool hidden = status.code() == Code::kInternal || status.code() == Code::kCorrupt;
  error.message = hidden ? std::string(kHidden) : status.message();
  if (hidden) error.param.clear();
  return error;
}

ApiError ErrorFromHttp(int http_status, std::string message) {
  ApiError error;
  error.http_status = http_status;
  error.type = TypeOf(http_status);
  error.message = std::move(message);
  return error;
}

std::string ErrorJson(const ApiError& error) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("error").BeginObject();
  json.Key("message").String(error.message).Key("type").String(error.type);
  json.Key("param").StringOrNull(error.param).Key("code").StringOrNull(error.code);
  json.EndObject().EndObject();
  return out;
}

net::HttpResponse ErrorResponse(const ApiError& error) {
  net::HttpResponse response{.status = error.http_status, .headers = {}, .body = ErrorJson(error)};
  response.headers.Add("Content-Type", "application/json");
  if (error.http_status == 503 || error.http_status == 429 || error.retry_after_ms > 0) {
    const uint32_t seconds = std::max(1u, (error.retry_after_ms + 999) / 1000);
    response.headers.Add("Retry-After", std::to_string(seconds));
  }
  if (error.http_status == 401) response.headers.Add("WWW-Authenticate", "Bearer");
  return response;
}

void AddRequestId(net::HttpHeaders& headers, std::string_view request_id) {
  headers.Add("X-Request-Id", std::string(request_id));
  headers.Add("request-id", std::string(request_id));
}

bool IsJson(const net::HttpRequest& request) {
  const auto type = request.headers.Get("Content-Type");
  if (!type) return false;
  std::string_view name = type->substr(0, type->find(';'));
  while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
  return net::EqualsIgnoreCase(name, "application/json");
}

net::HttpResponse JsonResponse(std::string body) {
  net::HttpResponse response{.status = 200, .headers = {}, .body = std::move(body)};
  response.headers.Add("Content-Type", "application/json");
  return response;
}

}  // namespace plumb::api
