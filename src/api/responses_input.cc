// api/responses_input.cc
// See responses_input.h. A table says which members each type of item has; members that carry
// nothing for the model (ids, status, phase) are checked and let go.
#include "api/responses_input.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "api/image_fields.h"
#include "api/json_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kIdBytesMax = 256;
constexpr size_t kNameBytesMax = 128;
constexpr size_t kWordBytesMax = 64;

// One item while it is read.
struct Draft {
  const InputLimits& limits;
  ResponsesItem item;
  bool has_text = false;  // the member that makes the item what it is has been there
  std::string encrypted;  // of a reasoning
};

using MemberReader = Status (*)(const JsonValue& value, const std::string& path, Draft& draft);

Status ReadInto(const JsonValue& value, const std::string& path, size_t bytes_max,
                std::string& out) {
  ASSIGN_OR_RETURN(auto text, ReadString(value, path, bytes_max));
  out = std::move(text).value_or("");
  return base::OkStatus();
}

// An image is checked as far as it can be, then refused: no model here has vision.
Status RefuseImage(const JsonValue& part, const std::string& path) {
  const JsonValue* url = part.Find("image_url");
  if (url == nullptr || url->kind != JsonKind::kString) {
    return InvalidArgument(path,
                           "an image is given by its image_url, a string; this server keeps "
                           "no files");
  }
  RETURN_IF_ERROR(ReadImageUrl(url->text, MemberPath(path, "image_url")));
  return NoVision(path);
}

// The text of one part; `types` are those that are text.
Result<std::string> ReadTextPart(const JsonValue& part, const std::string& path,
                                 std::initializer_list<std::string_view> types) {
  if (part.kind != JsonKind::kObject) return WrongKind(part, path, "an object");
  const JsonValue* type = part.Find("type");
  if (type == nullptr || type->kind != JsonKind::kString)
    return InvalidArgument(MemberPath(path, "type"), "a content part needs a type");
  std::string_view known;
  for (const std::string_view name : types)
    if (name == type->text) known = name;
  if (type->text == "input_image") return RefuseImage(part, path);
  if (known.empty()) {
    return InvalidArgument(path, fmt::format("a content part of type \"{}\" is not supported: this "
                                             "model takes texts only",
                                             type->text.substr(0, kWordBytesMax)));
  }
  const std::string_view member = known == "refusal" ? "refusal" : "text";
  for (const JsonMember& given : part.members) {
    const bool ours = given.name == "type" || given.name == member || given.name == "annotations" ||
                      given.name == "logprobs" ||
                      (given.name == "prompt_cache_breakpoint" && given.value.is_null());
    if (!ours) {
      const std::string given_path = MemberPath(path, given.name);
      return InvalidArgument(given_path, fmt::format("{} is not known here", given_path));
    }
  }
  const JsonValue* text = part.Find(member);
  const std::string text_path = MemberPath(path, member);
  if (text == nullptr || text->kind != JsonKind::kString)
    return InvalidArgument(text_path, fmt::format("{} must be a string", text_path));
  return text->text;
}

// A string, or an array of parts.
Status ReadTexts(const JsonValue& value, const std::string& path, Draft& draft,
                 std::initializer_list<std::string_view> types) {
  draft.has_text = true;
  if (value.kind == JsonKind::kString) {
    draft.item.text = value.text;
    return base::OkStatus();
  }
  if (value.kind != JsonKind::kArray)
    return WrongKind(value, path, "a string or an array of text parts");
  RETURN_IF_ERROR(CheckArray(value, path, draft.limits.parts_max));
  for (size_t i = 0; i < value.items.size(); ++i) {
    ASSIGN_OR_RETURN(std::string text, ReadTextPart(value.items[i], IndexPath(path, i), types));
    draft.item.parts.push_back(std::move(text));
  }
  if (draft.item.parts.size() == 1) {
    draft.item.text = std::move(draft.item.parts.front());
    draft.item.parts.clear();
  }
  return base::OkStatus();
}

Status ReadContent(const JsonValue& value, const std::string& path, Draft& draft) {
  return ReadTexts(value, path, draft, {"input_text", "output_text", "text", "refusal"});
}

Status ReadOutput(const JsonValue& value, const std::string& path, Draft& draft) {
  return ReadTexts(value, path, draft, {"input_text", "output_text"});
}

Status ReadCallText(const JsonValue& value, const std::string& path, Draft& draft) {
  if (value.kind != JsonKind::kString) return WrongKind(value, path, "a string");
  draft.has_text = true;
  draft.item.text = value.text;
  return base::OkStatus();
}

Status ReadRole(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(ReadInto(value, path, kWordBytesMax, draft.item.role));
  for (const std::string_view role : {"user", "assistant", "system", "developer"})
    if (draft.item.role == role) return base::OkStatus();
  return InvalidArgument(path, "a role is \"user\", \"assistant\", \"system\" or \"developer\"");
}

// The reasoning's own text; null and nothing are the same.
Status ReadReasoningText(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(CheckArray(value, path, draft.limits.parts_max));
  for (size_t i = 0; i < value.items.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string text,
                     ReadTextPart(value.items[i], IndexPath(path, i), {"reasoning_text", "text"}));
    draft.item.text += text;
  }
  return base::OkStatus();
}

// A summary is for people: it is not what the model thought, and it is not told to it.
Status CheckSummary(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(CheckArray(value, path, draft.limits.parts_max));
  for (size_t i = 0; i < value.items.size(); ++i)
    RETURN_IF_ERROR(ReadTextPart(value.items[i], IndexPath(path, i), {"summary_text"}));
  return base::OkStatus();
}

Status ReadEncrypted(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(ReadInto(value, path, SIZE_MAX, draft.encrypted));
  if (draft.encrypted.empty() || draft.encrypted.starts_with(kOpenReasoning))
    return base::OkStatus();
  return InvalidArgument(path, fmt::format("{} is not of this server, which cannot read it; leave "
                                           "this item out",
                                           path))
      .WithReason("invalid_encrypted_content");
}

Status ReadId(const JsonValue& value, const std::string& path, Draft& draft) {
  return ReadInto(value, path, kIdBytesMax, draft.item.id);
}
Status ReadCallId(const JsonValue& value, const std::string& path, Draft& draft) {
  return ReadInto(value, path, kIdBytesMax, draft.item.call_id);
}
Status ReadName(const JsonValue& value, const std::string& path, Draft& draft) {
  return ReadInto(value, path, kNameBytesMax, draft.item.name);
}
Status ReadSpace(const JsonValue& value, const std::string& path, Draft& draft) {
  return ReadInto(value, path, kNameBytesMax, draft.item.tool_space);
}
Status CheckWord(const JsonValue& value, const std::string& path, Draft&) {
  return ToStatus(ReadString(value, path, kIdBytesMax));
}
// {"type": "direct"}: the model called the tool itself, as it always does here.
Status CheckCaller(const JsonValue& value, const std::string& path, Draft&) {
  RETURN_IF_ERROR(CheckObject(value, path, 4));
  const JsonValue* type = value.Find("type");
  const bool direct = type != nullptr && type->text == "direct";
  if (value.is_null() || direct) return base::OkStatus();
  return InvalidArgument(path, "only calls by the model itself are known here");
}

struct Member {
  ItemKind kind;
  std::string_view name;
  MemberReader read;
};

constexpr Member kMembers[] = {
    {ItemKind::kMessage, "role", ReadRole},
    {ItemKind::kMessage, "content", ReadContent},
    {ItemKind::kMessage, "phase", CheckWord},
    {ItemKind::kReasoning, "content", ReadReasoningText},
    {ItemKind::kReasoning, "encrypted_content", ReadEncrypted},
    {ItemKind::kReasoning, "summary", CheckSummary},
    {ItemKind::kFunctionCall, "call_id", ReadCallId},
    {ItemKind::kFunctionCall, "name", ReadName},
    {ItemKind::kFunctionCall, "namespace", ReadSpace},
    {ItemKind::kFunctionCall, "arguments", ReadCallText},
    {ItemKind::kFunctionCall, "caller", CheckCaller},
    {ItemKind::kFunctionOutput, "call_id", ReadCallId},
    {ItemKind::kFunctionOutput, "output", ReadOutput},
    {ItemKind::kFunctionOutput, "name", CheckWord},
    {ItemKind::kFunctionOutput, "namespace", CheckWord},
    {ItemKind::kFunctionOutput, "caller", CheckCaller},
    {ItemKind::kCustomCall, "call_id", ReadCallId},
    {ItemKind::kCustomCall, "name", ReadName},
    {ItemKind::kCustomCall, "namespace", ReadSpace},
    {ItemKind::kCustomCall, "input", ReadCallText},
    {ItemKind::kCustomCall, "caller", CheckCaller},
    {ItemKind::kCustomOutput, "call_id", ReadCallId},
    {ItemKind::kCustomOutput, "output", ReadOutput},
    {ItemKind::kCustomOutput, "name", CheckWord},
    {ItemKind::kCustomOutput, "caller", CheckCaller},
};

Status ReadMember(const JsonMember& member, const std::string& path, Draft& draft) {
  if (member.name == "type") return base::OkStatus();
  if (member.name == "id") return ReadId(member.value, path, draft);
  if (member.name == "status" || member.name == "created_by")
    return CheckWord(member.value, path, draft);
  for (const Member& known : kMembers) {
    if (known.kind == draft.item.kind && known.name == member.name)
      return known.read(member.value, path, draft);
  }
  return InvalidArgument(path, fmt::format("{} is not known here", path));
}

Result<ItemKind> ReadKind(const JsonValue& value, const std::string& path) {
  const JsonValue* type = value.Find("type");
  if (type == nullptr || type->is_null()) {
    if (value.Find("role") != nullptr) return ItemKind::kMessage;  // OpenAI's short form
    return MissingMember(MemberPath(path, "type"));
  }
  const std::string type_path = MemberPath(path, "type");
  if (type->kind != JsonKind::kString) return WrongKind(*type, type_path, "a string");
  const std::string name = type->text.substr(0, kWordBytesMax);
  for (const ItemKind kind :
       {ItemKind::kMessage, ItemKind::kReasoning, ItemKind::kFunctionCall,
        ItemKind::kFunctionOutput, ItemKind::kCustomCall, ItemKind::kCustomOutput}) {
    if (ItemTypeName(kind) == name) return kind;
  }
  return InvalidArgument(type_path, fmt::format("items of type \"{}\" are not known here", name));
}

Status CheckWhole(const Draft& draft, const std::string& path) {
  const ResponsesItem& item = draft.item;
  const bool call = item.kind == ItemKind::kFunctionCall || item.kind == ItemKind::kCustomCall;
  const bool output =
      item.kind == ItemKind::kFunctionOutput || item.kind == ItemKind::kCustomOutput;
  if (item.kind == ItemKind::kReasoning) {
    if (item.text.empty() || draft.limits.abilities.reasoning) return base::OkStatus();
    return InvalidArgument(path, "this model does not reason that way; leave the item out");
  }
  if ((call || output) && !draft.limits.abilities.tools)
    return InvalidArgument(path, "this model calls no tools that way; leave the item out");
  if ((call || output) && item.call_id.empty()) return MissingMember(MemberPath(path, "call_id"));
  if (call && item.name.empty()) return MissingMember(MemberPath(path, "name"));
  if (item.kind == ItemKind::kMessage && item.role.empty())
    return MissingMember(MemberPath(path, "role"));
  if (draft.has_text) return base::OkStatus();
  const bool function = item.kind == ItemKind::kFunctionCall;
  const std::string_view member =
      call ? (function ? "arguments" : "input") : (output ? "output" : "content");
  return MissingMember(MemberPath(path, member));
}

Result<std::shared_ptr<const ResponsesItem>> ReadReference(const JsonValue& value,
                                                           const std::string& path,
                                                           const FindItem& find) {
  const std::string id_path = MemberPath(path, "id");
  const JsonValue* id = value.Find("id");
  if (id == nullptr || id->kind != JsonKind::kString) return MissingMember(id_path);
  for (const JsonMember& member : value.members) {
    if (member.name != "type" && member.name != "id")
      return InvalidArgument(MemberPath(path, member.name), "a reference has type and id only");
  }
  auto item = find ? find(id->text) : nullptr;
  if (item != nullptr) return item;
  return InvalidArgument(id_path, "no item of this id is kept here; send the item itself")
      .WithReason("item_not_found");
}

// A reference has the type, or nothing but an id.
bool IsReference(const JsonValue& value) {
  const JsonValue* type = value.Find("type");
  if (type == nullptr || type->is_null())
    return value.Find("id") != nullptr && value.Find("role") == nullptr;
  return type->text == "item_reference";
}

Result<std::shared_ptr<const ResponsesItem>> ReadItem(const JsonValue& value,
                                                      const std::string& path,
                                                      const InputLimits& limits,
                                                      const std::string& name,
                                                      const FindItem& find) {
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  if (IsReference(value)) return ReadReference(value, path, find);
  Draft draft{.limits = limits, .item = {}, .has_text = false, .encrypted = {}};
  ASSIGN_OR_RETURN(draft.item.kind, ReadKind(value, path));
  for (const JsonMember& member : value.members)
    RETURN_IF_ERROR(ReadMember(member, MemberPath(path, member.name), draft));
  if (draft.item.text.empty() && !draft.encrypted.empty())
    draft.item.text = draft.encrypted.substr(kOpenReasoning.size());
  RETURN_IF_ERROR(CheckWhole(draft, path));
  if (draft.item.id.empty()) draft.item.id = std::string(ItemIdPrefix(draft.item.kind)) + name;
  return std::shared_ptr<const ResponsesItem>(
      std::make_shared<ResponsesItem>(std::move(draft.item)));
}

}  // namespace

Result<ItemList> ReadInput(const JsonValue& value, const std::string& path,
                           const InputLimits& limits, uint64_t number, const FindItem& find) {
  ItemList items;
  const auto name = [number](size_t index) { return fmt::format("_{:016x}_{}", number, index); };
  if (value.kind == JsonKind::kString) {
    ResponsesItem item;
    item.id = std::string(ItemIdPrefix(item.kind)) + name(0);
    item.role = "user";
    item.text = value.text;
    items.push_back(std::make_shared<ResponsesItem>(std::move(item)));
    return items;
  }
  if (value.kind != JsonKind::kArray)
    return WrongKind(value, path, "a string or an array of items");
  RETURN_IF_ERROR(CheckArray(value, path, limits.items_max));
  for (size_t i = 0; i < value.items.size(); ++i) {
    ASSIGN_OR_RETURN(auto item,
                     ReadItem(value.items[i], IndexPath(path, i), limits, name(i), find));
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace plumb::api
