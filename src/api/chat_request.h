// api/chat_request.h
// The body of POST /v1/chat/completions as a typed struct whose every number is in range. The
// policy for fields: honoured, or known to be harmless and ignored (the list is in
// chat_request.cc), or refused with 400 by name. Nothing that would change the answer is dropped
// silently, and unknown names are refused, as OpenAI does. Read next: api/sampling_fields.h,
// api/message_fields.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/generation_request.h"
#include "base/result.h"

namespace plumb::api {

// A value type.
struct ChatRequest : GenerationRequest {
  bool include_usage = false;             // a last chunk with the usage
  std::vector<std::string> custom_tools;  // of input.tools: names of those whose input is a text
};

// kInvalidArgument with the field's path; reason "request_too_large" for a body above the limit.
base::Result<ChatRequest> ParseChatRequest(std::string_view body, const RequestLimits& limits);

// The names of every field that has a meaning here, those included that are only refused.
std::vector<std::string_view> ChatFieldNames();

}  // namespace plumb::api
