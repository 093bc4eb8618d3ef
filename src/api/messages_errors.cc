// api/messages_errors.cc
// See messages_errors.h.
#include "api/messages_errors.h"

#include <utility>

#include "api/json_writer.h"

namespace plumb::api {

namespace {

constexpr int kNoRoom = 529;
constexpr std::string_view kTooLong = "prompt is too long";

int StatusOf(const ApiError& error) {
  return error.http_status == 503 && error.code == "overloaded" ? kNoRoom : error.http_status;
}

std::string_view TypeOf(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 402:
      return "billing_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 409:
      return "conflict_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 504:
      return "timeout_error";
    case kNoRoom:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

// Fields that others know by another name than this dialect.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"stop", "stop_sequences"},
    {"response_format", "output_config.format"},
    {"reasoning_effort", "output_config.effort"},
};

std::string MessageOf(const ApiError& error) {
  std::string_view field = error.param;
  for (const auto& [theirs, ours] : kNames)
    if (field == theirs) field = ours;
  // The words by which agents know that they must shorten their conversation.
  if (error.code == "context_length_exceeded") field = kTooLong;
  const bool said = field.empty() || error.message.starts_with(field);
  return said ? error.message : std::string(field) + ": " + error.message;
}

}  // namespace

std::string MessagesErrorJson(const ApiError& error) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("type").String("error").Key("error").BeginObject();
  json.Key("type").String(TypeOf(StatusOf(error))).Key("message").String(MessageOf(error));
  json.EndObject().Key("request_id").StringOrNull(error.request_id).EndObject();
  return out;
}

net::HttpResponse MessagesErrorResponse(const ApiError& error) {
  net::HttpResponse response = ErrorResponse(error);
  response.status = StatusOf(error);
  response.body = MessagesErrorJson(error);
  return response;
}

}  // namespace plumb::api
