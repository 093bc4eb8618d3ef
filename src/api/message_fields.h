// api/message_fields.h
// The `messages` of a chat request into text::ChatMessage. Content is a string or text parts; what
// stands between parts is for the model's chat format to say (nothing, with a template). What the
// format does not take (calls of tools and their results, reasoning) and media are refused: a
// dropped part would change the answer. "developer" is OpenAI's newer name for "system" and becomes
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/json.h"
#include "base/result.h"
#include "text/chat_format.h"

namespace plumb::api {

struct MessageLimits {
  uint32_t messages_max;
  uint32_t content_parts_max;  // of one message
  text::ChatAbilities abilities = {};
};

// kInvalidArgument with the path of what is at fault; an empty list is refused.
base::Result<std::vector<text::ChatMessage>> ReadMessages(const JsonValue& value,
                                                          const std::string& path,
                                                          MessageLimits limits);

}  // namespace plumb::api
