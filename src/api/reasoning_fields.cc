// api/reasoning_fields.cc
// See reasoning_fields.h.
#include "api/reasoning_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "api/json_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kWordBytesMax = 32;
constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                         "high", "xhigh",   "max"};

}  // namespace

Result<std::string> ReadEffort(const JsonValue& value, const std::string& path) {
  if (value.is_null()) return std::string();
  if (value.kind == JsonKind::kNumber) {
    ASSIGN_OR_RETURN(const auto level, ReadInteger(value, path, {1, 100}));
    return fmt::format("{}", *level);
  }
  const bool known = value.kind == JsonKind::kString &&
                     std::ranges::find(kEfforts, value.text) != std::end(kEfforts);
  if (known) return value.text;
  return InvalidArgument(
      path, fmt::format("{} must be one of \"none\", \"minimal\", \"low\", \"medium\", \"high\", "
                        "\"xhigh\", \"max\", or a number from 1 to 100",
                        path));
}

Status ReadThinking(const JsonValue& value, const std::string& path, text::ChatInput& input) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  const std::string budget_path = MemberPath(path, "budget_tokens");
  std::optional<bool> thinking;
  std::optional<int64_t> budget;
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "budget_tokens") {
      ASSIGN_OR_RETURN(budget, ReadInteger(member.value, member_path, {1, INT32_MAX}));
      continue;
    }
    if (member.name != "type") return UnknownMember(member_path);
    ASSIGN_OR_RETURN(const std::string word,
                     RequireString(member.value, member_path, kWordBytesMax));
    if (word != "enabled" && word != "disabled") {
      return InvalidArgument(member_path,
                             fmt::format("{} must be \"enabled\" or \"disabled\"", member_path));
    }
    thinking = word == "enabled";
  }
  if (!thinking) {
    const std::string type_path = MemberPath(path, "type");
    return MissingMember(type_path);
  }
  if (budget && !*thinking)
    return InvalidArgument(budget_path, "a budget is for thinking that is \"enabled\"");
  input.thinking = thinking;
  if (budget) input.reasoning_tokens_max = static_cast<uint32_t>(*budget);
  return base::OkStatus();
}

}  // namespace plumb::api
