// api/messages_tools.cc
// See messages_tools.h.
#include "api/messages_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/json_fields.h"
#include "api/json_writer.h"
#include "api/messages_blocks.h"
#include "api/retention_fields.h"
#include "api/tool_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using text::ToolSpec;

namespace {

constexpr size_t kWordBytesMax = 64;

// A tool that Anthropic defines and its client runs: models of that vendor know it by its type,
// others are told. `type` is what the name of the type begins with, a date follows.
struct KnownTool {
  std::string_view type;
  std::string_view description;
  std::string_view parameters;
};

constexpr std::string_view kEditorParameters =
    R"({"type":"object","properties":{)"
    R"("command":{"type":"string","enum":["view","create","str_replace","insert","undo_edit"]},)"
    R"("path":{"type":"string","description":"Absolute path of a file or directory"},)"
    R"("file_text":{"type":"string","description":"For create: the whole content"},)"
    R"("old_str":{"type":"string","description":"For str_replace: what stands there once"},)"
    R"("new_str":{"type":"string","description":"For str_replace: what takes its place"},)"
    R"("insert_line":{"type":"integer","description":"For insert: the line after which"},)"
    R"("insert_text":{"type":"string","description":"For insert: the text"},)"
    R"("view_range":{"type":"array","items":{"type":"integer"},)"
    R"("description":"For view: first and last line, -1 for the end"}},)"
    R"("required":["command","path"]})";
constexpr std::string_view kMemoryParameters =
    R"({"type":"object","properties":{)"
    R"("command":{"type":"string",)"
    R"("enum":["view","create","str_replace","insert","delete","rename"]},)"
    R"("path":{"type":"string","description":"A path under /memories"},)"
    R"("view_range":{"type":"array","items":{"type":"integer"}},)"
    R"("file_text":{"type":"string"},"old_str":{"type":"string"},"new_str":{"type":"string"},)"
    R"("insert_line":{"type":"integer"},"insert_text":{"type":"string"},)"
    R"("old_path":{"type":"string"},"new_path":{"type":"string"}},"required":["command"]})";

constexpr KnownTool kKnownTools[] = {
    {"bash_", "Runs a command in a bash session that lasts over calls, and returns its output.",
     R"({"type":"object","properties":{)"
     R"("command":{"type":"string","description":"The command to run"},)"
     R"("restart":{"type":"boolean","description":"Start the session anew instead"}}})"},
    {"text_editor_", "Views, creates and edits files.", kEditorParameters},
    {"memory_", "Keeps notes over conversations, as files in the directory /memories.",
     kMemoryParameters},
};

// Whether `type` is `prefix` and a date of eight digits.
bool IsDated(std::string_view type, std::string_view prefix) {
  if (!type.starts_with(prefix)) return false;
  type.remove_prefix(prefix.size());
  return type.size() == 8 && type.find_first_not_of("0123456789") == type.npos;
}

Result<bool> ReadFlag(const JsonValue& tool, const std::string& path, std::string_view name) {
  const JsonValue* member = tool.Find(name);
  if (member == nullptr) return false;
  ASSIGN_OR_RETURN(const auto flag, ReadBool(*member, MemberPath(path, name)));
  return flag.value_or(false);
}

// Who may call it: the model, always. Calls out of programs that run on the server are not.
Status CheckCallers(const JsonValue& tool, const std::string& path) {
  const JsonValue* callers = tool.Find("allowed_callers");
  if (callers == nullptr || callers->is_null()) return base::OkStatus();
  const std::string callers_path = MemberPath(path, "allowed_callers");
  if (callers->kind != JsonKind::kArray) return WrongKind(*callers, callers_path, "an array");
  const bool direct = std::ranges::any_of(callers->items, [](const JsonValue& caller) {
    return caller.kind == JsonKind::kString && caller.text == "direct";
  });
  if (direct) return base::OkStatus();
  return InvalidArgument(callers_path, "tools are called by the model alone (\"direct\")");
}

// {name, description, input_schema}.
Status ReadCustom(const JsonValue& tool, const std::string& path, ToolSpec& spec) {
  // eager_input_streaming: arguments always stream as they come.
  RETURN_IF_ERROR(CheckMembers(tool, path,
                               {"name", "description", "input_schema", "strict", "defer_loading",
                                "allowed_callers", "eager_input_streaming"}));
  const JsonValue* description = tool.Find("description");
  if (description != nullptr) {
    ASSIGN_OR_RETURN(auto text,
                     ReadString(*description, MemberPath(path, "description"), kToolTextBytesMax));
    spec.description = std::move(text).value_or("");
  }
  const std::string schema_path = MemberPath(path, "input_schema");
  const JsonValue* schema = tool.Find("input_schema");
  if (schema == nullptr) return InvalidArgument(schema_path, "this field is missing");
  if (schema->kind != JsonKind::kObject)
    return WrongKind(*schema, schema_path, "a JSON Schema, an object");
  spec.parameters.clear();
  AppendJson(spec.parameters, *schema);
  return base::OkStatus();
}

Status ReadKnown(const JsonValue& tool, const std::string& path, const std::string& type,
                 ToolSpec& spec) {
  const auto known = std::ranges::find_if(
      kKnownTools, [&](const KnownTool& one) { return IsDated(type, one.type); });
  if (known == std::end(kKnownTools)) {
    return InvalidArgument(
        MemberPath(path, "type"),
        fmt::format("tools of type \"{}\" run on servers of another vendor, or are not known here; "
                    "leave this one out",
                    type.substr(0, kWordBytesMax)));
  }
  RETURN_IF_ERROR(CheckMembers(
      tool, path, {"name", "strict", "defer_loading", "allowed_callers", "max_characters"}));
  spec.description = known->description;
  spec.parameters = known->parameters;
  return base::OkStatus();
}

}  // namespace

Result<std::string> ReadToolName(const JsonValue& value, const std::string& path) {
  ASSIGN_OR_RETURN(std::string name, ReadMemberText(value, path, "name", kToolNameBytesMax));
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  };
  if (!name.empty() && std::ranges::all_of(name, allowed)) return name;
  return InvalidArgument(MemberPath(path, "name"),
                         "the name of a tool has 1 to 64 letters, digits, '_' and '-'");
}

Result<DeclaredTool> ReadMessagesTool(const JsonValue& value, const std::string& path) {
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  DeclaredTool tool;
  const JsonValue* type = value.Find("type");
  std::optional<std::string> type_name;
  if (type != nullptr) {
    ASSIGN_OR_RETURN(type_name, ReadString(*type, MemberPath(path, "type"), kWordBytesMax));
  }
  if (type_name.value_or("custom") == "custom") {
    RETURN_IF_ERROR(ReadCustom(value, path, tool.spec));
  } else {
    RETURN_IF_ERROR(ReadKnown(value, path, *type_name, tool.spec));
  }
  ASSIGN_OR_RETURN(tool.spec.name, ReadToolName(value, path));
  RETURN_IF_ERROR(CheckCallers(value, path));
  ASSIGN_OR_RETURN(tool.spec.strict, ReadFlag(value, path, "strict"));
  ASSIGN_OR_RETURN(tool.deferred, ReadFlag(value, path, "defer_loading"));
  ASSIGN_OR_RETURN(tool.mark, ReadCacheMark(value, path));
  return tool;
}

Result<std::vector<DeclaredTool>> ReadMessagesTools(const JsonValue& value,
                                                    const std::string& path) {
  RETURN_IF_ERROR(CheckArray(value, path, kToolsMax));
  std::vector<DeclaredTool> tools;
  for (size_t i = 0; i < value.items.size(); ++i) {
    const std::string tool_path = IndexPath(path, i);
    ASSIGN_OR_RETURN(DeclaredTool tool, ReadMessagesTool(value.items[i], tool_path));
    const auto same = [&](const DeclaredTool& other) { return other.spec.name == tool.spec.name; };
    if (std::ranges::any_of(tools, same))
      return InvalidArgument(MemberPath(tool_path, "name"), "each tool has a name of its own");
    tools.push_back(std::move(tool));
  }
  return tools;
}

Result<std::vector<ToolSpec>> OfferedTools(const std::vector<DeclaredTool>& declared,
                                           std::span<const ToolChange> changes) {
  std::vector<ToolSpec> known;  // of every name the newest
  std::vector<ToolSpec> offered;
  for (const DeclaredTool& tool : declared) {
    known.push_back(tool.spec);
    if (!tool.deferred) offered.push_back(tool.spec);
  }
  for (const ToolChange& change : changes) {
    if (change.definition) {
      std::erase_if(known, [&](const ToolSpec& tool) { return tool.name == change.name; });
      std::erase_if(offered, [&](const ToolSpec& tool) { return tool.name == change.name; });
      if (known.size() >= kToolsMax) return InvalidArgument(change.path, "too many tools");
      known.push_back(*change.definition);
    }
    const auto tool = std::ranges::find(known, change.name, &ToolSpec::name);
    const bool is_offered =
        std::ranges::find(offered, change.name, &ToolSpec::name) != offered.end();
    if (change.kind == ToolChange::Kind::kRemove) {
      std::erase_if(offered, [&](const ToolSpec& one) { return one.name == change.name; });
    } else if (tool == known.end()) {
      return InvalidArgument(change.path, "there is no tool of this name");
    } else if (!is_offered) {
      offered.push_back(*tool);
    }
  }
  return offered;
}

Status ReadMessagesToolChoice(const JsonValue& value, const std::string& path,
                              text::ChatInput& input) {
  if (value.is_null()) return base::OkStatus();
  ASSIGN_OR_RETURN(const std::string type, ReadType(value, path));
  RETURN_IF_ERROR(CheckMembers(value, path, {"name", "disable_parallel_tool_use"}));
  ASSIGN_OR_RETURN(const bool one_call, ReadFlag(value, path, "disable_parallel_tool_use"));
  input.parallel_tool_calls = !one_call;
  if (type == "auto") {
    input.tool_choice = text::ToolChoice::kAuto;
  } else if (type == "none") {
    input.tool_choice = text::ToolChoice::kNone;
  } else if (type == "any") {
    input.tool_choice = text::ToolChoice::kRequired;
  } else if (type == "tool") {
    input.tool_choice = text::ToolChoice::kNamed;
    ASSIGN_OR_RETURN(input.tool_name, ReadMemberText(value, path, "name", kToolNameBytesMax));
    return base::OkStatus();
  } else {
    return InvalidArgument(MemberPath(path, "type"),
                           "type is \"auto\", \"any\", \"tool\" or \"none\"");
  }
  if (value.Find("name") != nullptr)
    return InvalidArgument(MemberPath(path, "name"), "a name is for type \"tool\" alone");
  return base::OkStatus();
}

}  // namespace plumb::api
