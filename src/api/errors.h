// api/errors.h
// The one place where failures become HTTP: a base::Status, or a fault of the request line, turns
// into an OpenAI-shaped body {"error":{"message","type","param","code"}} with its status and
// Retry-After. What went wrong inside (kInternal, kCorrupt) is told to the log, not to the
// stranger.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http.h"

namespace plumb::api {

// A value type.
struct ApiError {
  int http_status = 500;
  std::string_view type = "server_error";  // one of OpenAI's error types; static text
  std::string message;
  std::string param;  // path of the field at fault; empty = null
  std::string code;   // machine-readable; empty = null
  uint32_t retry_after_ms = 0;
  std::string request_id = {};  // for dialects whose bodies have it
};

// What an API makes of it: the whole answer. ErrorResponse is OpenAI's.
using ErrorShape = net::HttpResponse (*)(const ApiError& error);

// By the table in STYLE.md; 413, 409 and 422 for the reasons "request_too_large",
// "idempotency_key_in_use" and "idempotency_key_reused". `status` is not ok.
ApiError ErrorFromStatus(const base::Status& status);

// For what is decided before there is a Status: 400, 404, 405, 408, 413, 415, 431, 5xx.
ApiError ErrorFromHttp(int http_status, std::string message);

// {"error":{...}}, one line, no newline.
std::string ErrorJson(const ApiError& error);

// The whole answer, Content-Type and Retry-After included (seconds, rounded up, at least 1).
net::HttpResponse ErrorResponse(const ApiError& error);

// Under both names that clients look for: X-Request-Id is OpenAI's, request-id Anthropic's.
void AddRequestId(net::HttpHeaders& headers, std::string_view request_id);

// Whether the body says it is "application/json", with or without parameters.
bool IsJson(const net::HttpRequest& request);

// A JSON answer with status 200.
net::HttpResponse JsonResponse(std::string body);

}  // namespace plumb::api
