// api/retention_fields.cc
// See retention_fields.h.
#include "api/retention_fields.h"

#include <algorithm>

#include "api/json_fields.h"

namespace plumb::api {

using base::Duration;
using base::InvalidArgument;
using base::Result;

namespace {
constexpr size_t kWordBytesMax = 64;
}  // namespace

Result<std::optional<Duration>> ReadCacheControl(const JsonValue& value, const std::string& path) {
  if (value.is_null()) return std::optional<Duration>();
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  const std::string type_path = MemberPath(path, "type");
  const JsonValue* type = value.Find("type");
  if (type == nullptr) return InvalidArgument(type_path, "this field is missing");
  if (type->kind != JsonKind::kString) return WrongKind(*type, type_path, "a string");
  if (type->text != "ephemeral") return InvalidArgument(type_path, "type is \"ephemeral\"");
  Duration time = kFiveMinutes;
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "ttl") {
      ASSIGN_OR_RETURN(const auto word, ReadWord(member.value, member_path, {"5m", "1h"}));
      if (word == "1h") time = kOneHour;
    } else if (member.name == "scope") {
      RETURN_IF_ERROR(ToStatus(ReadString(member.value, member_path, kWordBytesMax)));
    } else if (member.name != "type") {
      return InvalidArgument(member_path, "this field is not known here");
    }
  }
  return std::optional(time);
}

Result<std::optional<Duration>> ReadCacheMark(const JsonValue& block, const std::string& path) {
  const JsonValue* mark = block.Find("cache_control");
  if (mark == nullptr) return std::optional<Duration>();
  return ReadCacheControl(*mark, MemberPath(path, "cache_control"));
}

Result<std::optional<CacheMark>> ReadPromptRetention(const JsonValue& value,
                                                     const std::string& path) {
  ASSIGN_OR_RETURN(const auto word, ReadWord(value, path, {"in_memory", "in-memory", "24h"}));
  if (word.empty()) return std::optional<CacheMark>();
  return std::optional(
      CacheMark{.place = std::nullopt, .time = word == "24h" ? kOneDay : kFiveMinutes});
}

std::vector<CacheMark> LastingMarks(const std::vector<CacheMark>& marks) {
  std::vector<CacheMark> lasting;
  for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
    if (lasting.empty() || mark->time > lasting.back().time) lasting.push_back(*mark);
  }
  std::ranges::reverse(lasting);
  return lasting;
}

}  // namespace plumb::api
