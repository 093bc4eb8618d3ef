// api/responses_messages.h
// A conversation of items as the messages that a model's chat format takes. What belongs to one
// turn of the assistant (reasoning, text, calls) comes as several items and becomes one message.
#pragma once

#include <string>
#include <vector>

#include "api/responses_item.h"
#include "text/chat_input.h"

namespace plumb::api {

// Appends the items as messages. Developers are "system" to a model.
void AppendMessages(const ItemList& items, std::vector<text::ChatMessage>& messages);

// What the model is told a tool of a namespace is called.
std::string ToolNameFor(const std::string& tool_space, const std::string& name);
// The arguments that a custom tool's input stands for: {"input": ...}, as such a tool is declared.
std::string CustomArguments(const std::string& input);

}  // namespace plumb::api
