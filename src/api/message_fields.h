// api/message_fields.h
// The `messages` of a chat request into text::ChatMessage. Content is a string or text parts, which
// are joined without anything between them (no character is added that the caller did not write).
// "developer" is OpenAI's newer name for "system" and becomes it. Tool traffic and media are
// refused: this server cannot honour them yet, and a dropped part would change the answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/json.h"
#include "base/result.h"
#include "text/chat_template.h"

namespace plumb::api {

struct MessageLimits {
  uint32_t messages_max;
  uint32_t content_parts_max;  // of one message
};

// kInvalidArgument with the path of what is at fault; an empty list is refused.
base::Result<std::vector<text::ChatMessage>> ReadMessages(const JsonValue& value,
                                                          const std::string& path,
                                                          MessageLimits limits);

}  // namespace plumb::api
