// api/responses_places.h
// Errors about a prompt speak of the messages and tools that a model is told; callers of the
// Responses API know items and tools of their own. This says where in the request each of them
// stands, and puts an error into the words of this API.
#pragma once

#include <string>
#include <vector>

#include "api/responses_messages.h"
#include "api/responses_tools.h"
#include "base/status.h"

namespace plumb::api {

// A value type.
struct ResponsesPlaces {
  // By message of the prompt; a path, as "input[2]" or "instructions".
  struct Message {
    std::string path;
    std::vector<std::string> calls;  // of its tool_calls
  };
  std::vector<Message> messages;
  std::vector<std::string> tools;  // by tool of the prompt, as "tools[0].tools[1]"
};

// `sources` are of items that came before this request, `earlier` of them, and of those of its
// input, which was a text alone or an array.
void AppendPlaces(const std::vector<MessageSource>& sources, size_t earlier, bool text_input,
                  std::vector<ResponsesPlaces::Message>& out);

// The same error, its field and words being those of this API. Others are as they were.
base::Status InResponsesWords(const base::Status& status, const ResponsesPlaces& places);

}  // namespace plumb::api
