// api/messages_request.h
// The body of POST /v1/messages, Anthropic's, as a typed struct whose every number is in range. The
// policy is that of api/chat_request.h: honoured, or known to be harmless and ignored, or refused
// by name; the table is in messages_request.cc, for people in docs/api_coverage.md. Read next:
// api/messages_content.h, api/messages_tools.h.
#pragma once

#include <string_view>
#include <vector>

#include "api/generation_request.h"
#include "base/result.h"

namespace plumb::api {

// A value type.
struct MessagesRequest : GenerationRequest {
  bool show_thinking = true;   // false: thinking comes as a signature alone ("display": "omitted")
  bool warm_only = false;      // max_tokens 0: computes the prompt, answers nothing
  bool reports_edits = false;  // the answer says that context_management has edited nothing
};

enum class MessagesUse : uint8_t {
  kAnswer,
  kCount,  // count_tokens: max_tokens may be missing
};

// `beta` is the header anthropic-beta. kInvalidArgument with the field's path; reason
// "request_too_large" for a body above the limit.
base::Result<MessagesRequest> ParseMessagesRequest(std::string_view body,
                                                   const RequestLimits& limits, MessagesUse use,
                                                   std::string_view beta = {});

// The names of every field that has a meaning here, those included that are only refused.
std::vector<std::string_view> MessagesFieldNames();

}  // namespace plumb::api
