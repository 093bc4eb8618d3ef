// api/responses_messages.h
// A conversation of items as the messages that a model's chat format takes. What belongs to one
// turn of the assistant (reasoning, text, calls) comes as several items and becomes one message.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/responses_item.h"
#include "text/chat_input.h"

namespace plumb::api {

// Which items a message was made of: the first of them, and those that became its calls.
struct MessageSource {
  size_t item;
  std::vector<size_t> calls = {};
};

// Appends the items as messages, and tells of each of these where it comes from. Developers are
// "system" to a model.
std::vector<MessageSource> AppendMessages(const ItemList& items,
                                          std::vector<text::ChatMessage>& messages);

// What the model is told a tool of a namespace is called.
std::string ToolNameFor(const std::string& tool_space, const std::string& name);

}  // namespace plumb::api
