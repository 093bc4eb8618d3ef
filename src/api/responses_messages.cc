// api/responses_messages.cc
// See responses_messages.h.
#include "api/responses_messages.h"

#include <utility>

#include "api/custom_tools.h"

namespace plumb::api {

using text::ChatMessage;

namespace {

// Into content and parts.
void SetContent(const ResponsesItem& item, ChatMessage& message) {
  message.content = item.text;
  for (const std::string& part : item.parts) {
    message.content += part;
    message.parts.push_back({text::ContentPart::Kind::kText, part});
  }
}

// The assistant's turn that the item goes on with: the last message, where nothing that stands in
// it comes after what the item brings.
ChatMessage& TurnFor(ItemKind kind, std::vector<ChatMessage>& messages) {
  const bool open = !messages.empty() && messages.back().role == "assistant";
  const auto fits = [kind](const ChatMessage& last) {
    const bool spoken = !last.content.empty() || !last.parts.empty();
    if (kind == ItemKind::kReasoning)
      return !spoken && last.tool_calls.empty() && last.reasoning.empty();
    return kind != ItemKind::kMessage || !spoken;
  };
  if (!open || !fits(messages.back())) {
    messages.emplace_back();
    messages.back().role = "assistant";
  }
  return messages.back();
}

// At most one message more.
void AppendItem(const ResponsesItem& item, std::vector<ChatMessage>& messages) {
  switch (item.kind) {
    case ItemKind::kMessage:
      if (item.role == "assistant") {
        SetContent(item, TurnFor(item.kind, messages));
      } else {
        messages.push_back(
            {.role = item.role == "developer" ? "system" : item.role, .content = ""});
        SetContent(item, messages.back());
      }
      break;
    case ItemKind::kReasoning:
      if (!item.text.empty()) TurnFor(item.kind, messages).reasoning = item.text;
      break;
    case ItemKind::kFunctionCall:
    case ItemKind::kCustomCall: {
      const bool custom = item.kind == ItemKind::kCustomCall;
      TurnFor(item.kind, messages)
          .tool_calls.push_back({.id = item.call_id,
                                 .name = ToolNameFor(item.tool_space, item.name),
                                 .arguments = custom ? CustomArguments(item.text) : item.text});
      break;
    }
    case ItemKind::kFunctionOutput:
    case ItemKind::kCustomOutput:
      messages.push_back({.role = "tool", .content = ""});
      SetContent(item, messages.back());
      messages.back().tool_call_id = item.call_id;
      break;
  }
}

}  // namespace

std::vector<MessageSource> AppendMessages(const ItemList& items,
                                          std::vector<ChatMessage>& messages) {
  std::vector<MessageSource> sources;
  const size_t before = messages.size();
  for (size_t i = 0; i < items.size(); ++i) {
    const ResponsesItem& item = *items[i];
    const bool call = item.kind == ItemKind::kFunctionCall || item.kind == ItemKind::kCustomCall;
    AppendItem(item, messages);
    if (before + sources.size() < messages.size()) sources.push_back({.item = i});
    if (call) sources.back().calls.push_back(i);
  }
  return sources;
}

std::string ToolNameFor(const std::string& tool_space, const std::string& name) {
  return tool_space.empty() ? name : tool_space + "__" + name;
}

}  // namespace plumb::api
