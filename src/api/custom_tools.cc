// api/custom_tools.cc
// See custom_tools.h.
#include "api/custom_tools.h"

#include <fmt/format.h>

#include <utility>

#include "api/json_fields.h"
#include "api/json_writer.h"
#include "api/tool_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kWordBytesMax = 64;

// Of a member that has to be there.
Result<std::string> ReadText(const JsonValue& object, std::string_view name,
                             const std::string& path, size_t bytes_max) {
  const std::string member_path = MemberPath(path, name);
  const JsonValue* value = object.Find(name);
  if (value == nullptr) return MissingMember(member_path);
  return RequireString(*value, member_path, bytes_max);
}

// {"syntax", "definition"}, and perhaps the "type" beside them.
Result<std::string> ReadGrammar(const JsonValue& value, const std::string& path, bool beside_type) {
  for (const JsonMember& member : value.members) {
    const bool known = member.name == "syntax" || member.name == "definition" ||
                       (beside_type && member.name == "type");
    if (!known) return UnknownMember(MemberPath(path, member.name));
  }
  ASSIGN_OR_RETURN(const std::string syntax, ReadText(value, "syntax", path, kWordBytesMax));
  if (syntax != "lark" && syntax != "regex") {
    const std::string syntax_path = MemberPath(path, "syntax");
    return InvalidArgument(syntax_path,
                           fmt::format("{} must be \"lark\" or \"regex\"", syntax_path));
  }
  ASSIGN_OR_RETURN(const std::string definition,
                   ReadText(value, "definition", path, kToolTextBytesMax));
  return fmt::format("\n\nThe input follows this {} {}:\n{}", syntax,
                     syntax == "lark" ? "grammar" : "pattern", definition);
}

}  // namespace

std::string CustomArguments(const std::string& input) {
  std::string out = "{\"input\": ";
  AppendJsonString(out, input);
  return out + '}';
}

Result<std::string> ReadCustomFormat(const JsonValue& value, const std::string& path,
                                     std::string_view inner) {
  if (value.is_null()) return std::string();
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  ASSIGN_OR_RETURN(const std::string type, ReadText(value, "type", path, kWordBytesMax));
  if (type != "text" && type != "grammar") {
    const std::string type_path = MemberPath(path, "type");
    return InvalidArgument(type_path, fmt::format("{} must be \"text\" or \"grammar\"", type_path));
  }
  if (type == "grammar" && inner.empty()) return ReadGrammar(value, path, /*beside_type=*/true);
  for (const JsonMember& member : value.members) {
    const bool known = member.name == "type" || (type == "grammar" && member.name == inner);
    if (!known) return UnknownMember(MemberPath(path, member.name));
  }
  if (type == "text") return std::string();
  const std::string inner_path = MemberPath(path, inner);
  const JsonValue* grammar = value.Find(inner);
  if (grammar == nullptr) return MissingMember(inner_path);
  if (grammar->kind != JsonKind::kObject) return WrongKind(*grammar, inner_path, "an object");
  return ReadGrammar(*grammar, inner_path, /*beside_type=*/false);
}

}  // namespace plumb::api
