// api/messages_blocks.cc
// See messages_blocks.h.
#include "api/messages_blocks.h"

#include <algorithm>
#include <utility>

#include "api/image_fields.h"
#include "api/json_fields.h"
#include "api/retention_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kWordBytesMax = 64;
constexpr size_t kTitleBytesMax = 4096;
constexpr std::string_view kBetweenBlocks = "\n\n";
constexpr std::string_view kBillingLine = "x-anthropic-billing-header:";

// A text without the lines that are for the vendor's books.
std::string WithoutBilling(std::string text) {
  while (text.starts_with(kBillingLine)) {
    const size_t end = text.find('\n');
    text.erase(0, end == std::string::npos ? end : end + 1);
  }
  return text;
}

}  // namespace

void AppendBlock(std::string& out, std::string_view text) {
  if (text.empty()) return;
  if (!out.empty()) out += kBetweenBlocks;
  out += text;
}

// The member of that name, which has to be there.
Result<std::string> ReadMemberText(const JsonValue& block, const std::string& path,
                                   std::string_view name, size_t bytes_max) {
  const std::string member_path = MemberPath(path, name);
  const JsonValue* member = block.Find(name);
  if (member == nullptr) return InvalidArgument(member_path, "this field is missing");
  return RequireString(*member, member_path, bytes_max);
}

// Whether an object has members of these names only; `cache_control` may be in every one.
Status CheckMembers(const JsonValue& block, const std::string& path,
                    std::initializer_list<std::string_view> names) {
  for (const JsonMember& member : block.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "cache_control") {
      RETURN_IF_ERROR(ToStatus(ReadCacheControl(member.value, member_path)));
    } else if (member.name != "type" && std::ranges::find(names, member.name) == names.end()) {
      return InvalidArgument(member_path, "this field is not known here");
    }
  }
  return base::OkStatus();
}

Result<std::string> ReadType(const JsonValue& block, const std::string& path) {
  if (block.kind != JsonKind::kObject) return WrongKind(block, path, "an object");
  return ReadMemberText(block, path, "type", kWordBytesMax);
}

Result<std::string> ReadTextBlock(const JsonValue& block, const std::string& path) {
  // Citations stand beside the text that has them; the model gets the text.
  RETURN_IF_ERROR(CheckMembers(block, path, {"text", "citations"}));
  return ReadMemberText(block, path, "text", SIZE_MAX);
}

// A document of plain text, with what is said of it in front.
Result<std::string> ReadDocument(const JsonValue& block, const std::string& path) {
  RETURN_IF_ERROR(CheckMembers(block, path, {"source", "title", "context", "citations"}));
  const JsonValue* citations = block.Find("citations");
  const JsonValue* enabled = citations == nullptr ? nullptr : citations->Find("enabled");
  if (enabled != nullptr && enabled->boolean)
    return InvalidArgument(MemberPath(path, "citations"), "citations are not supported");
  std::string text;
  for (const std::string_view name : {"title", "context"}) {
    const JsonValue* member = block.Find(name);
    if (member == nullptr || member->is_null()) continue;
    ASSIGN_OR_RETURN(const std::string said,
                     RequireString(*member, MemberPath(path, name), kTitleBytesMax));
    AppendBlock(text, said);
  }
  const std::string source_path = MemberPath(path, "source");
  const JsonValue* source = block.Find("source");
  if (source == nullptr) return InvalidArgument(source_path, "this field is missing");
  ASSIGN_OR_RETURN(const std::string type, ReadType(*source, source_path));
  if (type != "text") {
    return InvalidArgument(MemberPath(source_path, "type"),
                           "documents of plain text are taken (type \"text\"), no others");
  }
  RETURN_IF_ERROR(CheckMembers(*source, source_path, {"media_type", "data"}));
  ASSIGN_OR_RETURN(const std::string data, ReadMemberText(*source, source_path, "data", SIZE_MAX));
  AppendBlock(text, data);
  return text;
}

// The source is checked before the model's sight is spoken of: what is wrong is wrong everywhere.
Status CheckImageBlock(const JsonValue& block, const std::string& path) {
  RETURN_IF_ERROR(CheckMembers(block, path, {"source", "transformations"}));
  const std::string source_path = MemberPath(path, "source");
  const JsonValue* source = block.Find("source");
  if (source == nullptr) return InvalidArgument(source_path, "this field is missing");
  ASSIGN_OR_RETURN(const std::string type, ReadType(*source, source_path));
  if (type == "base64") {
    RETURN_IF_ERROR(CheckMembers(*source, source_path, {"media_type", "data"}));
    ASSIGN_OR_RETURN(const std::string media_type,
                     ReadMemberText(*source, source_path, "media_type", kWordBytesMax));
    ASSIGN_OR_RETURN(const std::string data,
                     ReadMemberText(*source, source_path, "data", SIZE_MAX));
    RETURN_IF_ERROR(ReadImageData(media_type, data, source_path));
  } else if (type == "url") {
    RETURN_IF_ERROR(CheckMembers(*source, source_path, {"url"}));
    ASSIGN_OR_RETURN(const std::string url, ReadMemberText(*source, source_path, "url", SIZE_MAX));
    RETURN_IF_ERROR(ReadImageUrl(url, source_path));
  } else {
    return InvalidArgument(MemberPath(source_path, "type"),
                           "the source of an image is of type \"base64\"");
  }
  return NoVision(path);
}

Result<std::string> ReadMessagesSystem(const JsonValue& value, const std::string& path,
                                       const RequestLimits& limits, std::vector<CacheMark>& marks) {
  if (value.is_null()) return std::string();
  if (value.kind == JsonKind::kString) return WithoutBilling(value.text);
  if (value.kind != JsonKind::kArray)
    return WrongKind(value, path, "a string or an array of text blocks");
  RETURN_IF_ERROR(CheckArray(value, path, limits.content_parts_max));
  std::string out;
  for (size_t i = 0; i < value.items.size(); ++i) {
    const std::string block_path = IndexPath(path, i);
    ASSIGN_OR_RETURN(const std::string type, ReadType(value.items[i], block_path));
    if (type != "text")
      return InvalidArgument(MemberPath(block_path, "type"), "system takes blocks of text only");
    ASSIGN_OR_RETURN(std::string text, ReadTextBlock(value.items[i], block_path));
    AppendBlock(out, WithoutBilling(std::move(text)));
    ASSIGN_OR_RETURN(const auto mark, ReadCacheMark(value.items[i], block_path));
    if (mark) marks.push_back({text::ConversationPlace{.message = 0, .bytes = out.size()}, *mark});
  }
  return out;
}

}  // namespace plumb::api
