// api/responses_request.h
// The body of POST /v1/responses as a typed struct whose every number is in range. The policy for
// fields is that of api/chat_request.h: honoured, or known to change nothing and ignored, or
// refused by name; the table is in responses_request.cc. What the body refers to (an earlier
// answer, an item) is looked up by whoever keeps answers. Read next: api/responses_input.h,
// api/responses_tools.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/generation_request.h"
#include "api/responses_input.h"
#include "api/responses_item.h"
#include "api/responses_places.h"
#include "api/responses_tools.h"
#include "base/result.h"

namespace plumb::api {

// A value type.
struct ResponsesRequest : GenerationRequest {
  ItemList items;  // the conversation: that of previous_response_id, then this request's own
  ResponsesTools tools;
  ResponsesPlaces places;
  bool store = true;
  bool background = false;
  bool encrypted_reasoning = false;  // include: "reasoning.encrypted_content"
  // What the answer repeats of the request: members of a JSON object, `"a":1,"b":2`.
  std::string echo;
};

// What is kept of earlier requests of this caller; either may be empty: nothing is.
struct ResponsesContext {
  // The whole conversation up to and with that answer; nothing when it is not kept.
  std::function<std::optional<ItemList>(const std::string& id)> response;
  FindItem item;
  uint64_t number = 0;  // makes the ids of items that came without one
};

// kInvalidArgument with the field's path; reason "request_too_large" for a body above the limit,
// "previous_response_not_found".
base::Result<ResponsesRequest> ParseResponsesRequest(std::string_view body,
                                                     const RequestLimits& limits,
                                                     const ResponsesContext& context);

// The names of every field that has a meaning here, those included that are only refused.
std::vector<std::string_view> ResponsesFieldNames();

}  // namespace plumb::api
