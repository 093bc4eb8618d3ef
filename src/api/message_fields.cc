// api/message_fields.cc
// See message_fields.h.
#include "api/message_fields.h"

#include <fmt/format.h>

#include "api/json_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using text::ChatMessage;

namespace {

constexpr size_t kNameBytesMax = 64;
constexpr size_t kRoleBytesMax = 32;

Result<std::string> ReadRole(const JsonValue& value, const std::string& path) {
  ASSIGN_OR_RETURN(const auto role, ReadString(value, path, kRoleBytesMax));
  if (!role) return WrongKind(value, path, "a string");
  if (*role == "system" || *role == "developer") return std::string("system");
  if (*role == "user" || *role == "assistant") return *role;
  if (*role == "tool" || *role == "function")
    return InvalidArgument(path, fmt::format("role \"{}\" is not supported: this server calls no "
                                             "tools",
                                             *role));
  return InvalidArgument(path, "a role is \"system\", \"developer\", \"user\" or \"assistant\"");
}

Result<std::string> ReadPart(const JsonValue& part, const std::string& path) {
  if (part.kind != JsonKind::kObject) return WrongKind(part, path, "an object");
  const JsonValue* type = part.Find("type");
  if (type == nullptr || type->kind != JsonKind::kString)
    return InvalidArgument(MemberPath(path, "type"), "a content part needs a type");
  if (type->text != "text") {
    return InvalidArgument(path,
                           "only content parts of type \"text\" are supported: this server "
                           "takes no images, audio or files");
  }
  for (const JsonMember& member : part.members) {
    if (member.name != "type" && member.name != "text") {
      return InvalidArgument(MemberPath(path, member.name),
                             "a text part has the fields type and text only");
    }
  }
  const JsonValue* text = part.Find("text");
  if (text == nullptr || text->kind != JsonKind::kString)
    return InvalidArgument(MemberPath(path, "text"), "a text part needs a text, a string");
  return text->text;
}

Result<std::string> ReadContent(const JsonValue* value, const std::string& path,
                                MessageLimits limits) {
  if (value == nullptr || value->is_null())
    return InvalidArgument(path, "a message needs a content: a string or an array of text parts");
  if (value->kind == JsonKind::kString) return value->text;
  if (value->kind != JsonKind::kArray)
    return WrongKind(*value, path, "a string or an array of text parts");
  RETURN_IF_ERROR(CheckArray(*value, path, limits.content_parts_max));
  std::string content;
  for (size_t i = 0; i < value->items.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string text, ReadPart(value->items[i], IndexPath(path, i)));
    content += text;
  }
  return content;
}

// What an answer of ours carries besides role and content is taken back when empty, so that a
// client can send the message object it was given.
bool AsksForNothing(const JsonValue& value) {
  return value.is_null() || (value.kind == JsonKind::kArray && value.items.empty());
}

Result<ChatMessage> ReadMessage(const JsonValue& value, const std::string& path,
                                MessageLimits limits) {
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  ChatMessage message;
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "role") {
      ASSIGN_OR_RETURN(message.role, ReadRole(member.value, member_path));
    } else if (member.name == "name") {
      ASSIGN_OR_RETURN(auto name, ReadString(member.value, member_path, kNameBytesMax));
      message.name = name.value_or("");
    } else if (member.name != "content" && !AsksForNothing(member.value)) {
      return InvalidArgument(member_path, fmt::format("{} is not supported", member_path));
    }
  }
  if (message.role.empty()) return InvalidArgument(MemberPath(path, "role"), "a role is missing");
  ASSIGN_OR_RETURN(message.content,
                   ReadContent(value.Find("content"), MemberPath(path, "content"), limits));
  return message;
}

}  // namespace

Result<std::vector<ChatMessage>> ReadMessages(const JsonValue& value, const std::string& path,
                                              MessageLimits limits) {
  if (value.kind != JsonKind::kArray) return WrongKind(value, path, "an array");
  RETURN_IF_ERROR(CheckArray(value, path, limits.messages_max));
  if (value.items.empty()) return InvalidArgument(path, "messages is empty");
  std::vector<ChatMessage> messages;
  messages.reserve(value.items.size());
  for (size_t i = 0; i < value.items.size(); ++i) {
    ASSIGN_OR_RETURN(ChatMessage message, ReadMessage(value.items[i], IndexPath(path, i), limits));
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace plumb::api
