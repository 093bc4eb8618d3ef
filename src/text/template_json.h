// text/template_json.h
// What a chat template sees of a conversation, as JSON: messages, tools and calls in the shape that
// transformers gives them. Internal to text. Read next: text/chat_template.h.
#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "text/chat_template.h"

namespace plumb::text {

// kInvalidArgument: as ChatTemplate::Render; or the arguments of a call hold more JSON than is read
// (field "messages[i].tool_calls[j].function.arguments").
base::Result<nlohmann::ordered_json> TemplateJson(const TemplateContext& context);

}  // namespace plumb::text
