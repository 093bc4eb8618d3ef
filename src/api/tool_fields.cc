// api/tool_fields.cc
// See tool_fields.h. Every object has a list of members that it takes; others are refused, since
// each would change the prompt.
#include "api/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "api/custom_tools.h"
#include "api/json_fields.h"
#include "api/json_writer.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using text::ToolCall;
using text::ToolSpec;

namespace {

constexpr size_t kWordBytesMax = 32;
constexpr size_t kIdBytesMax = 256;

// {"type": T, T: {...}} taken apart, T being "function" or "custom"; without a type the former.
struct Typed {
  bool custom = false;
  const JsonValue* inner = nullptr;
  std::string path;  // of `inner`
};

Result<Typed> ReadTyped(const JsonValue& value, const std::string& path) {
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  Typed typed;
  if (const JsonValue* type = value.Find("type"); type != nullptr) {
    const std::string type_path = MemberPath(path, "type");
    ASSIGN_OR_RETURN(const std::string word, RequireString(*type, type_path, kWordBytesMax));
    if (word != "function" && word != "custom") {
      return InvalidArgument(type_path,
                             fmt::format("{} must be \"function\" or \"custom\"", type_path));
    }
    typed.custom = word == "custom";
  }
  const std::string_view name = typed.custom ? "custom" : "function";
  typed.path = MemberPath(path, name);
  typed.inner = value.Find(name);
  if (typed.inner == nullptr) return MissingMember(typed.path);
  if (typed.inner->kind != JsonKind::kObject)
    return WrongKind(*typed.inner, typed.path, "an object");
  return typed;
}

bool IsOuter(std::string_view name, const Typed& typed) {
  return name == "type" || name == (typed.custom ? "custom" : "function");
}

Status CheckNamed(const std::string& name, const std::string& path) {
  if (!name.empty()) return base::OkStatus();
  const std::string name_path = MemberPath(path, "name");
  return InvalidArgument(name_path, fmt::format("{} is missing or empty", name_path));
}

// A member of the inner object of a tool; `format`: what a custom tool's says.
Status ReadToolMember(const JsonMember& member, const std::string& path, bool custom,
                      ToolSpec& tool, std::string& format) {
  if (member.name == "name") {
    ASSIGN_OR_RETURN(tool.name, RequireString(member.value, path, kToolNameBytesMax));
  } else if (member.name == "description") {
    ASSIGN_OR_RETURN(auto text, ReadString(member.value, path, kToolTextBytesMax));
    tool.description = std::move(text).value_or("");
  } else if (member.name == "format" && custom) {
    ASSIGN_OR_RETURN(format, ReadCustomFormat(member.value, path, /*inner=*/"grammar"));
  } else if (member.name == "strict" && !custom) {
    ASSIGN_OR_RETURN(const auto strict, ReadBool(member.value, path));
    tool.strict = strict.value_or(false);
  } else if (member.name == "parameters" && !custom) {
    if (member.value.is_null()) return base::OkStatus();
    if (member.value.kind != JsonKind::kObject)
      return WrongKind(member.value, path, "a JSON Schema, an object");
    tool.parameters.clear();
    AppendJson(tool.parameters, member.value);
  } else {
    return UnknownMember(path);
  }
  return base::OkStatus();
}

Status ReadTool(const JsonValue& value, const std::string& path, ChatTools& out) {
  ASSIGN_OR_RETURN(const Typed typed, ReadTyped(value, path));
  for (const JsonMember& member : value.members)
    if (!IsOuter(member.name, typed)) return UnknownMember(MemberPath(path, member.name));
  ToolSpec tool;
  if (typed.custom) tool.parameters = kCustomParameters;
  std::string format;
  for (const JsonMember& member : typed.inner->members) {
    RETURN_IF_ERROR(
        ReadToolMember(member, MemberPath(typed.path, member.name), typed.custom, tool, format));
  }
  tool.description += format;
  RETURN_IF_ERROR(CheckNamed(tool.name, typed.path));
  if (std::ranges::find(out.specs, tool.name, &ToolSpec::name) != out.specs.end())
    return InvalidArgument(MemberPath(typed.path, "name"), "two tools have this name");
  if (typed.custom) out.custom.push_back(tool.name);
  out.specs.push_back(std::move(tool));
  return base::OkStatus();
}

// The name in {"type": T, T: {"name"}}, which must be of a tool of that type.
Result<std::string> ReadNamed(const JsonValue& value, const std::string& path,
                              const std::vector<std::string>& custom,
                              const std::vector<ToolSpec>& tools) {
  ASSIGN_OR_RETURN(const Typed typed, ReadTyped(value, path));
  const std::string name_path = MemberPath(typed.path, "name");
  const JsonValue* name = typed.inner->Find("name");
  if (name == nullptr) return MissingMember(name_path);
  ASSIGN_OR_RETURN(std::string read, RequireString(*name, name_path, kToolNameBytesMax));
  const bool declared = std::ranges::find(tools, read, &ToolSpec::name) != tools.end();
  const bool is_custom = std::ranges::find(custom, read) != custom.end();
  if (declared && is_custom == typed.custom) return read;
  return InvalidArgument(name_path, fmt::format("{} names no {} of tools", name_path,
                                                typed.custom ? "custom tool" : "function"));
}

// {"mode", "tools": [...]}: the model is told of no others.
Status ReadAllowed(const JsonValue& value, const std::string& path,
                   const std::vector<std::string>& custom, text::ChatInput& input) {
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  const std::string list_path = MemberPath(path, "tools");
  const JsonValue* list = nullptr;
  bool has_mode = false;
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "mode") {
      ASSIGN_OR_RETURN(const std::string word,
                       RequireString(member.value, member_path, kWordBytesMax));
      if (word != "auto" && word != "required") {
        return InvalidArgument(member_path,
                               fmt::format("{} must be \"auto\" or \"required\"", member_path));
      }
      RETURN_IF_ERROR(ReadToolMode(word, member_path, input));
      has_mode = true;
    } else if (member.name == "tools") {
      list = &member.value;
    } else {
      return UnknownMember(member_path);
    }
  }
  if (!has_mode || list == nullptr) {
    const std::string missing = has_mode ? list_path : MemberPath(path, "mode");
    return MissingMember(missing);
  }
  if (list->kind != JsonKind::kArray) return WrongKind(*list, list_path, "an array");
  RETURN_IF_ERROR(CheckArray(*list, list_path, kToolsMax));
  std::vector<std::string> allowed;
  for (size_t i = 0; i < list->items.size(); ++i) {
    ASSIGN_OR_RETURN(std::string name,
                     ReadNamed(list->items[i], IndexPath(list_path, i), custom, input.tools));
    allowed.push_back(std::move(name));
  }
  std::erase_if(input.tools, [&](const ToolSpec& tool) {
    return std::ranges::find(allowed, tool.name) == allowed.end();
  });
  return base::OkStatus();
}

Result<ToolCall> ReadToolCall(const JsonValue& value, const std::string& path) {
  ASSIGN_OR_RETURN(const Typed typed, ReadTyped(value, path));
  ToolCall call;
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "id") {
      ASSIGN_OR_RETURN(call.id, RequireString(member.value, member_path, kIdBytesMax));
    } else if (member.name == "index") {  // of a streamed call, sent back as it came
      RETURN_IF_ERROR(ReadInteger(member.value, member_path, {0, INT32_MAX}));
    } else if (!IsOuter(member.name, typed)) {
      return UnknownMember(member_path);
    }
  }
  const std::string_view text_name = typed.custom ? "input" : "arguments";
  for (const JsonMember& member : typed.inner->members) {
    const std::string member_path = MemberPath(typed.path, member.name);
    if (member.name == "name") {
      ASSIGN_OR_RETURN(call.name, RequireString(member.value, member_path, kToolNameBytesMax));
    } else if (member.name == text_name) {
      ASSIGN_OR_RETURN(call.arguments, RequireString(member.value, member_path, kToolTextBytesMax));
    } else {
      return UnknownMember(member_path);
    }
  }
  if (typed.custom) call.arguments = CustomArguments(call.arguments);
  RETURN_IF_ERROR(CheckNamed(call.name, typed.path));
  return call;
}

}  // namespace

Status ReadToolMode(const std::string& word, const std::string& path, text::ChatInput& input) {
  if (word == "auto") {
    input.tool_choice = text::ToolChoice::kAuto;
  } else if (word == "none") {
    input.tool_choice = text::ToolChoice::kNone;
  } else if (word == "required") {
    input.tool_choice = text::ToolChoice::kRequired;
  } else {
    return InvalidArgument(path, fmt::format("{} must be \"none\", \"auto\", \"required\" or an "
                                             "object that names a tool",
                                             path));
  }
  return base::OkStatus();
}

Result<ChatTools> ReadTools(const JsonValue& value, const std::string& path) {
  RETURN_IF_ERROR(CheckArray(value, path, kToolsMax));
  ChatTools tools;
  for (size_t i = 0; i < value.items.size(); ++i)
    RETURN_IF_ERROR(ReadTool(value.items[i], IndexPath(path, i), tools));
  return tools;
}

Status ReadToolChoice(const JsonValue& value, const std::string& path,
                      const std::vector<std::string>& custom, text::ChatInput& input) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind != JsonKind::kObject) {
    ASSIGN_OR_RETURN(const std::string word, RequireString(value, path, kWordBytesMax));
    return ReadToolMode(word, path, input);
  }
  const JsonValue* type = value.Find("type");
  if (type != nullptr && type->kind == JsonKind::kString && type->text == "allowed_tools") {
    const std::string allowed_path = MemberPath(path, "allowed_tools");
    for (const JsonMember& member : value.members) {
      if (member.name != "type" && member.name != "allowed_tools")
        return UnknownMember(MemberPath(path, member.name));
    }
    const JsonValue* allowed = value.Find("allowed_tools");
    if (allowed == nullptr) return MissingMember(allowed_path);
    return ReadAllowed(*allowed, allowed_path, custom, input);
  }
  ASSIGN_OR_RETURN(input.tool_name, ReadNamed(value, path, custom, input.tools));
  input.tool_choice = text::ToolChoice::kNamed;
  return base::OkStatus();
}

Result<std::vector<ToolCall>> ReadToolCalls(const JsonValue& value, const std::string& path) {
  RETURN_IF_ERROR(CheckArray(value, path, kToolsMax));
  std::vector<ToolCall> calls;
  for (size_t i = 0; i < value.items.size(); ++i) {
    ASSIGN_OR_RETURN(ToolCall call, ReadToolCall(value.items[i], IndexPath(path, i)));
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace plumb::api
