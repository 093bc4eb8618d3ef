// api/response_format.cc
// See response_format.h. One row of the table per type; a schema goes on as the text it was.
#include "api/response_format.h"

#include <fmt/format.h>

#include <utility>

#include "api/json_fields.h"
#include "api/json_writer.h"
#include "text/grammar_compiler.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using text::GrammarCompiler;
using text::GrammarKind;
using text::GrammarSpec;

namespace {

constexpr size_t kNameBytesMax = 64;
constexpr size_t kDescriptionBytesMax = 4096;

Result<std::string> ReadText(const JsonValue& value, const std::string& path, size_t bytes_max) {
  ASSIGN_OR_RETURN(std::string text, RequireString(value, path, bytes_max));
  if (text.empty()) return InvalidArgument(path, fmt::format("{} is empty", path));
  return text;
}

// {"name", "description", "schema", "strict"}. The name and description are for people, and
// `strict` promises less than what always holds here.
Status ReadSchema(const JsonValue& value, const std::string& path, GrammarSpec& out) {
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "name") {
      RETURN_IF_ERROR(ReadString(member.value, member_path, kNameBytesMax));
    } else if (member.name == "description") {
      RETURN_IF_ERROR(ReadString(member.value, member_path, kDescriptionBytesMax));
    } else if (member.name == "strict") {
      RETURN_IF_ERROR(ReadBool(member.value, member_path));
    } else if (member.name == "schema") {
      const JsonKind kind = member.value.kind;
      if (kind != JsonKind::kObject && kind != JsonKind::kBool)
        return WrongKind(member.value, member_path, "a JSON Schema");
      AppendJson(out.source, member.value);
    } else {
      return UnknownMember(member_path);
    }
  }
  if (out.source.empty()) return MissingMember(MemberPath(path, "schema"));
  return base::OkStatus();
}

Status ReadSource(const JsonValue& value, const std::string& path, GrammarSpec& out) {
  ASSIGN_OR_RETURN(out.source, ReadText(value, path, GrammarCompiler::kSourceBytesMax));
  return base::OkStatus();
}

Status ReadChoices(const JsonValue& value, const std::string& path, GrammarSpec& out) {
  if (value.kind != JsonKind::kArray) return WrongKind(value, path, "an array of strings");
  RETURN_IF_ERROR(CheckArray(value, path, GrammarCompiler::kChoicesMax));
  for (size_t i = 0; i < value.items.size(); ++i) {
    const std::string item_path = IndexPath(path, i);
    ASSIGN_OR_RETURN(std::string text,
                     ReadText(value.items[i], item_path, GrammarCompiler::kSourceBytesMax));
    out.choices.push_back(std::move(text));
  }
  if (out.choices.empty()) return InvalidArgument(path, fmt::format("{} is empty", path));
  return base::OkStatus();
}

struct Type {
  std::string_view name;
  GrammarKind kind;
  std::string_view source;  // the member that says what; empty: none
  Status (*read)(const JsonValue& value, const std::string& path, GrammarSpec& out);
};

constexpr Type kTypes[] = {
    {"json_object", GrammarKind::kJsonObject, "", nullptr},
    {"json_schema", GrammarKind::kJsonSchema, "json_schema", ReadSchema},
    {"regex", GrammarKind::kRegex, "regex", ReadSource},
    {"choice", GrammarKind::kChoice, "choice", ReadChoices},
    {"grammar", GrammarKind::kLark, "grammar", ReadSource},  // or kEbnf, by "syntax"
};

// Of a grammar: "lark", the default, or "ebnf".
Status ReadSyntax(const JsonValue& value, const std::string& path, GrammarSpec& out) {
  ASSIGN_OR_RETURN(const std::string_view syntax, ReadWord(value, path, {"lark", "ebnf"}));
  if (syntax == "ebnf") out.kind = GrammarKind::kEbnf;
  return base::OkStatus();
}

Status ReadTrigger(const JsonValue& value, const std::string& path, std::string& out) {
  if (value.is_null()) return base::OkStatus();
  ASSIGN_OR_RETURN(out, ReadText(value, path, GrammarCompiler::kTriggerBytesMax));
  return base::OkStatus();
}

Result<GrammarSpec> ReadMembers(const JsonValue& value, const std::string& path, const Type& type) {
  GrammarSpec spec{.kind = type.kind};
  bool given = type.source.empty();
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "type") continue;
    if (!type.source.empty() && member.name == type.source) {
      RETURN_IF_ERROR(type.read(member.value, member_path, spec));
      given = true;
    } else if (member.name == "syntax" && type.kind == GrammarKind::kLark) {
      RETURN_IF_ERROR(ReadSyntax(member.value, member_path, spec));
    } else if (member.name == "begin") {
      RETURN_IF_ERROR(ReadTrigger(member.value, member_path, spec.begin));
    } else if (member.name == "end") {
      RETURN_IF_ERROR(ReadTrigger(member.value, member_path, spec.end));
    } else {
      return UnknownMember(member_path);
    }
  }
  if (!given) return MissingMember(MemberPath(path, type.source));
  if (!spec.end.empty() && spec.begin.empty()) {
    const std::string end_path = MemberPath(path, "end");
    return InvalidArgument(end_path, fmt::format("{} is only taken with begin", end_path));
  }
  return spec;
}

}  // namespace

Result<std::optional<GrammarSpec>> ReadResponseFormat(const JsonValue& value,
                                                      const std::string& path) {
  if (value.is_null()) return std::optional<GrammarSpec>();
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  const std::string type_path = MemberPath(path, "type");
  const JsonValue* type = value.Find("type");
  if (type == nullptr) return MissingMember(type_path);
  ASSIGN_OR_RETURN(const std::string name, ReadText(*type, type_path, kNameBytesMax));
  if (name == "text") {
    if (value.members.size() > 1) return InvalidArgument(path, "text has no other members");
    return std::optional<GrammarSpec>();
  }
  for (const Type& known : kTypes) {
    if (known.name != name) continue;
    ASSIGN_OR_RETURN(GrammarSpec spec, ReadMembers(value, path, known));
    return std::optional<GrammarSpec>(std::move(spec));
  }
  return InvalidArgument(type_path,
                         fmt::format("{} must be one of \"text\", \"json_object\", "
                                     "\"json_schema\", \"regex\", \"choice\", \"grammar\"",
                                     type_path));
}

std::string SchemaToTell(const std::optional<GrammarSpec>& grammar) {
  if (!grammar || !grammar->begin.empty()) return "";
  if (grammar->kind == GrammarKind::kJsonObject) return R"({"type": "json_object"})";
  return grammar->kind == GrammarKind::kJsonSchema ? grammar->source : "";
}

}  // namespace plumb::api
