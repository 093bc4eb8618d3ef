// api/messages_content.h
// `messages` of Anthropic's Messages, blocks of content, into text::ChatMessage:
// consecutive messages of a role become one, results of tools messages of their own, and blocks of
// text that follow each other are kept apart by an empty line. Every rule on which a chat format
// could stumble (a call without its result, a result without its call) is checked here, so that
// errors name places of the body. Read next: api/messages_blocks.h, api/messages_tools.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/generation_request.h"
#include "api/json.h"
#include "api/messages_tools.h"
#include "base/result.h"
#include "text/chat_input.h"

namespace plumb::api {

// What the messages say. A value type.
struct MessagesContent {
  std::vector<text::ChatMessage> messages;
  std::vector<ToolChange> tool_changes;  // in the order of the conversation
  std::vector<CacheMark> cache_marks;    // of blocks, by place; each has one
  std::string effort;                    // of the last system message that has one
  bool ends_with_assistant = false;      // the answer is to go on from there
  bool has_calls = false;                // any call of a tool
};

// All of `messages`, without `system`. What the model's chat format does not take is refused by
// limits.abilities, thinking excepted: without `reasoning` it is left out, as Anthropic leaves out
// that of earlier turns. kInvalidArgument with the path of what is at fault.
base::Result<MessagesContent> ReadMessagesContent(const JsonValue& value, const std::string& path,
                                                  const RequestLimits& limits);

}  // namespace plumb::api
