// api/message_fields.cc
// See message_fields.h.
#include "api/message_fields.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "api/image_fields.h"
#include "api/json_fields.h"
#include "api/tool_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using text::ChatMessage;

namespace {

constexpr size_t kNameBytesMax = 64;
constexpr size_t kRoleBytesMax = 32;
constexpr size_t kCallIdBytesMax = 256;

Result<std::string> ReadRole(const JsonValue& value, const std::string& path,
                             const text::ChatAbilities& abilities) {
  ASSIGN_OR_RETURN(const auto role, ReadString(value, path, kRoleBytesMax));
  if (!role) return WrongKind(value, path, "a string");
  if (*role == "system" || *role == "developer") return std::string("system");
  if (*role == "user" || *role == "assistant") return *role;
  if (*role == "tool" && abilities.tools) return *role;
  if (*role == "latest_reminder" && abilities.guides) return *role;
  if (*role == "tool" || *role == "function") {
    return InvalidArgument(path, fmt::format("role \"{}\" is not supported: this model calls no "
                                             "tools that way",
                                             *role));
  }
  return InvalidArgument(
      path, fmt::format("a role is \"system\", \"developer\", \"user\"{}{} or \"assistant\"",
                        abilities.tools ? ", \"tool\"" : "",
                        abilities.guides ? ", \"latest_reminder\"" : ""));
}

// Never ok: what is unsound is refused by its place in the image, the rest for want of sight.
Status RefuseImage(const JsonValue& part, const std::string& path) {
  for (const JsonMember& member : part.members) {
    if (member.name != "type" && member.name != "image_url") {
      return InvalidArgument(MemberPath(path, member.name),
                             "an image part has the fields type and image_url only");
    }
  }
  const std::string image_path = MemberPath(path, "image_url");
  const JsonValue* image = part.Find("image_url");
  if (image == nullptr || image->kind != JsonKind::kObject)
    return InvalidArgument(image_path, "an image part needs an image_url, an object with a url");
  for (const JsonMember& member : image->members) {
    const std::string member_path = MemberPath(image_path, member.name);
    if (member.name == "url") continue;
    if (member.name != "detail")
      return InvalidArgument(member_path, "an image_url has the fields url and detail only");
    RETURN_IF_ERROR(ReadWord(member.value, member_path, {"auto", "low", "high"}));
  }
  const std::string url_path = MemberPath(image_path, "url");
  const JsonValue* url = image->Find("url");
  if (url == nullptr || url->kind != JsonKind::kString)
    return InvalidArgument(url_path, "an image_url needs a url, a string");
  RETURN_IF_ERROR(ToStatus(ReadImageUrl(url->text, url_path)));
  return NoVision(path);
}

Result<std::string> ReadPart(const JsonValue& part, const std::string& path) {
  if (part.kind != JsonKind::kObject) return WrongKind(part, path, "an object");
  const JsonValue* type = part.Find("type");
  if (type == nullptr || type->kind != JsonKind::kString)
    return InvalidArgument(MemberPath(path, "type"), "a content part needs a type");
  if (type->text == "image_url") return RefuseImage(part, path);
  if (type->text != "text") {
    return InvalidArgument(path,
                           "only content parts of type \"text\" are supported: this server "
                           "takes no audio or files");
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

// Into message.content, and message.parts where it is given in parts.
Status ReadContent(const JsonValue* value, const std::string& path, MessageLimits limits,
                   ChatMessage& message) {
  if (value == nullptr || value->is_null()) {
    const bool may_be_empty = message.role == "assistant" && limits.abilities.tools;
    if (may_be_empty) return base::OkStatus();
    return InvalidArgument(path, "a message needs a content: a string or an array of text parts");
  }
  if (value->kind == JsonKind::kString) {
    message.content = value->text;
    return base::OkStatus();
  }
  if (value->kind != JsonKind::kArray)
    return WrongKind(*value, path, "a string or an array of text parts");
  RETURN_IF_ERROR(CheckArray(*value, path, limits.content_parts_max));
  for (size_t i = 0; i < value->items.size(); ++i) {
    ASSIGN_OR_RETURN(std::string text, ReadPart(value->items[i], IndexPath(path, i)));
    message.content += text;
    message.parts.push_back({text::ContentPart::Kind::kText, std::move(text)});
  }
  return base::OkStatus();
}

// What an answer of ours carries besides role and content is taken back when empty, so that a
// client can send the message object it was given.
bool AsksForNothing(const JsonValue& value) {
  return value.is_null() || (value.kind == JsonKind::kArray && value.items.empty());
}

// A member that only some formats take. False: it is none of these, or not for this role.
Result<bool> ReadAbility(const JsonMember& member, const std::string& path,
                         const text::ChatAbilities& abilities, ChatMessage& message) {
  const auto read_text = [&](std::string& out, size_t bytes_max) -> Result<bool> {
    ASSIGN_OR_RETURN(auto text, ReadString(member.value, path, bytes_max));
    out = std::move(text).value_or("");
    return true;
  };
  const bool assistant = message.role == "assistant";
  if (abilities.tools && assistant && member.name == "tool_calls") {
    ASSIGN_OR_RETURN(message.tool_calls, ReadToolCalls(member.value, path));
    return true;
  }
  if (abilities.tools && message.role == "tool" && member.name == "tool_call_id")
    return read_text(message.tool_call_id, kCallIdBytesMax);
  if (abilities.reasoning && assistant && member.name == "reasoning_content")
    return read_text(message.reasoning, SIZE_MAX);
  if (!abilities.guides) return false;
  if (assistant && member.name == "prefix") {
    ASSIGN_OR_RETURN(const auto prefix, ReadBool(member.value, path));
    message.prefix = prefix.value_or(false);
    return true;
  }
  if (message.role == "user" && member.name == "task")
    return read_text(message.task, kRoleBytesMax);
  return false;
}

Result<ChatMessage> ReadMessage(const JsonValue& value, const std::string& path,
                                MessageLimits limits) {
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  ChatMessage message;
  const JsonValue* role = value.Find("role");  // first: what else there may be depends on it
  if (role == nullptr) return InvalidArgument(MemberPath(path, "role"), "a role is missing");
  ASSIGN_OR_RETURN(message.role, ReadRole(*role, MemberPath(path, "role"), limits.abilities));
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "role" || member.name == "content") continue;
    if (member.name == "name") {
      ASSIGN_OR_RETURN(auto name, ReadString(member.value, member_path, kNameBytesMax));
      message.name = name.value_or("");
      continue;
    }
    ASSIGN_OR_RETURN(const bool known, ReadAbility(member, member_path, limits.abilities, message));
    if (!known && !AsksForNothing(member.value))
      return InvalidArgument(member_path, fmt::format("{} is not supported", member_path));
  }
  RETURN_IF_ERROR(ReadContent(value.Find("content"), MemberPath(path, "content"), limits, message));
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
