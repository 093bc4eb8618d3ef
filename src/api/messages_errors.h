// api/messages_errors.h
// Failures in Anthropic's shape: {"type": "error", "error": {"type", "message"}, "request_id"},
// with its types and statuses. The path of the field at fault stands before the message, as there.
#pragma once

#include <string>

#include "api/errors.h"
#include "net/http.h"

namespace plumb::api {

// One line, no newline.
std::string MessagesErrorJson(const ApiError& error);

// The whole answer. 529 instead of 503 where there was no room, as Anthropic's clients expect.
net::HttpResponse MessagesErrorResponse(const ApiError& error);

}  // namespace plumb::api
