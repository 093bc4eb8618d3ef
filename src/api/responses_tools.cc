// api/responses_tools.cc
// See responses_tools.h.
#include "api/responses_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/custom_tools.h"
#include "api/json_fields.h"
#include "api/json_writer.h"
#include "api/responses_messages.h"
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
  if (value == nullptr || value->is_null()) return MissingMember(member_path);
  return RequireString(*value, member_path, bytes_max);
}

// Members of every tool that say who may call it, when it is loaded and what comes back: nothing
// that the model is told.
bool IsAside(std::string_view name) {
  constexpr std::string_view kAside[] = {"type", "allowed_callers", "defer_loading", "async",
                                         "output_schema"};
  return std::ranges::find(kAside, name) != std::end(kAside);
}

// One pass over a list of tools.
class Reader {
 public:
  Reader(const text::ChatAbilities& abilities, ResponsesTools& out)
      : abilities_(abilities), out_(out) {}

  Status ReadList(const JsonValue& value, const std::string& path, const std::string& tool_space) {
    RETURN_IF_ERROR(CheckArray(value, path, kToolsMax));
    for (size_t i = 0; i < value.items.size(); ++i)
      RETURN_IF_ERROR(ReadTool(value.items[i], IndexPath(path, i), tool_space));
    return base::OkStatus();
  }

 private:
  Status ReadTool(const JsonValue& value, const std::string& path, const std::string& tool_space) {
    if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
    ASSIGN_OR_RETURN(const std::string type, ReadText(value, "type", path, kWordBytesMax));
    const bool nested = !tool_space.empty();
    if (type == "namespace" && !nested) return ReadSpace(value, path);
    if (type != "function" && type != "custom") return base::OkStatus();  // the header says why
    if (!abilities_.tools)
      return InvalidArgument(path, "this model calls no tools that way; leave it out");
    if (out_.known.size() == kToolsMax)
      return InvalidArgument(path, fmt::format("at most {} tools are taken", kToolsMax));
    ResponsesTool tool{.tool_space = tool_space, .custom = type == "custom", .path = path};
    ASSIGN_OR_RETURN(tool.name, ReadText(value, "name", path, kToolNameBytesMax));
    tool.told = ToolNameFor(tool_space, tool.name);
    const std::string name_path = MemberPath(path, "name");
    if (tool.told.size() > kToolNameBytesMax)
      return InvalidArgument(name_path, "with its namespace this name has more than 64 bytes");
    if (out_.Find(tool.told) != nullptr)
      return InvalidArgument(name_path, "two tools have this name");
    text::ToolSpec spec{.name = tool.told};
    RETURN_IF_ERROR(tool.custom ? ReadCustom(value, path, spec) : ReadFunction(value, path, spec));
    out_.known.push_back(std::move(tool));
    out_.specs.push_back(std::move(spec));
    if (!nested) Show(value);
    return base::OkStatus();
  }

  Status ReadSpace(const JsonValue& value, const std::string& path) {
    for (const JsonMember& member : value.members) {
      if (member.name != "type" && member.name != "name" && member.name != "description" &&
          member.name != "tools")
        return UnknownMember(MemberPath(path, member.name));
    }
    ASSIGN_OR_RETURN(const std::string name, ReadText(value, "name", path, kToolNameBytesMax));
    if (name.empty()) return MissingMember(MemberPath(path, "name"));
    const JsonValue* tools = value.Find("tools");
    if (tools == nullptr) return MissingMember(MemberPath(path, "tools"));
    RETURN_IF_ERROR(ReadList(*tools, MemberPath(path, "tools"), name));
    Show(value);
    return base::OkStatus();
  }

  Status ReadFunction(const JsonValue& value, const std::string& path, text::ToolSpec& spec) {
    for (const JsonMember& member : value.members) {
      const std::string member_path = MemberPath(path, member.name);
      if (member.name == "description") {
        RETURN_IF_ERROR(ReadDescription(member.value, member_path, spec));
      } else if (member.name == "strict") {
        ASSIGN_OR_RETURN(const auto strict, ReadBool(member.value, member_path));
        spec.strict = strict.value_or(false);
      } else if (member.name == "parameters") {
        if (member.value.is_null()) continue;
        if (member.value.kind != JsonKind::kObject)
          return WrongKind(member.value, member_path, "a JSON Schema, an object");
        spec.parameters.clear();
        AppendJson(spec.parameters, member.value);
      } else if (member.name != "name" && !IsAside(member.name)) {
        return UnknownMember(member_path);
      }
    }
    return base::OkStatus();
  }

  Status ReadCustom(const JsonValue& value, const std::string& path, text::ToolSpec& spec) {
    spec.parameters = kCustomParameters;
    std::string grammar;
    for (const JsonMember& member : value.members) {
      const std::string member_path = MemberPath(path, member.name);
      if (member.name == "description") {
        RETURN_IF_ERROR(ReadDescription(member.value, member_path, spec));
      } else if (member.name == "format") {
        ASSIGN_OR_RETURN(grammar, ReadCustomFormat(member.value, member_path, /*inner=*/""));
      } else if (member.name != "name" && !IsAside(member.name)) {
        return UnknownMember(member_path);
      }
    }
    spec.description += grammar;
    return base::OkStatus();
  }

  static Status ReadDescription(const JsonValue& value, const std::string& path,
                                text::ToolSpec& spec) {
    ASSIGN_OR_RETURN(auto text, ReadString(value, path, kToolTextBytesMax));
    spec.description = std::move(text).value_or("");
    return base::OkStatus();
  }

  void Show(const JsonValue& value) {
    out_.json.pop_back();
    if (out_.json.size() > 1) out_.json += ',';
    AppendJson(out_.json, value);
    out_.json += ']';
  }

  const text::ChatAbilities& abilities_;
  ResponsesTools& out_;
};

// The tool that {"type", "name"} names, as the model knows it; empty: one that was left out.
Result<std::string> ReadToolName(const JsonValue& value, const std::string& path,
                                 const ResponsesTools& tools) {
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  ASSIGN_OR_RETURN(const std::string type, ReadText(value, "type", path, kWordBytesMax));
  if (type != "function" && type != "custom") return std::string();
  ASSIGN_OR_RETURN(const std::string name, ReadText(value, "name", path, kToolNameBytesMax));
  std::string tool_space;
  if (value.Find("namespace") != nullptr) {
    ASSIGN_OR_RETURN(tool_space, ReadText(value, "namespace", path, kToolNameBytesMax));
  }
  std::string told = ToolNameFor(tool_space, name);
  if (tools.Find(told) != nullptr) return told;
  return InvalidArgument(MemberPath(path, "name"), "this names no tool of tools");
}

Status ReadAllowed(const JsonValue& value, const std::string& path, const ResponsesTools& tools,
                   text::ChatInput& input) {
  ASSIGN_OR_RETURN(const std::string mode, ReadText(value, "mode", path, kWordBytesMax));
  RETURN_IF_ERROR(ReadToolMode(mode, MemberPath(path, "mode"), input));
  const std::string list_path = MemberPath(path, "tools");
  const JsonValue* list = value.Find("tools");
  if (list == nullptr) return MissingMember(list_path);
  if (list->kind != JsonKind::kArray) return WrongKind(*list, list_path, "an array");
  RETURN_IF_ERROR(CheckArray(*list, list_path, kToolsMax));
  std::vector<std::string> allowed;
  for (size_t i = 0; i < list->items.size(); ++i) {
    ASSIGN_OR_RETURN(std::string told,
                     ReadToolName(list->items[i], IndexPath(list_path, i), tools));
    allowed.push_back(std::move(told));
  }
  std::erase_if(input.tools, [&](const text::ToolSpec& spec) {
    return std::ranges::find(allowed, spec.name) == allowed.end();
  });
  return base::OkStatus();
}

}  // namespace

const ResponsesTool* ResponsesTools::Find(std::string_view told) const {
  const auto found = std::ranges::find(known, told, &ResponsesTool::told);
  return found == known.end() ? nullptr : &*found;
}

Result<ResponsesTools> ReadResponsesTools(const JsonValue& value, const std::string& path,
                                          const text::ChatAbilities& abilities) {
  ResponsesTools tools;
  RETURN_IF_ERROR(Reader(abilities, tools).ReadList(value, path, /*tool_space=*/""));
  return tools;
}

Status ReadResponsesToolChoice(const JsonValue& value, const std::string& path,
                               const ResponsesTools& tools, const text::ChatAbilities& abilities,
                               text::ChatInput& input) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind == JsonKind::kObject) {
    ASSIGN_OR_RETURN(const std::string type, ReadText(value, "type", path, kWordBytesMax));
    if (type == "allowed_tools") {
      RETURN_IF_ERROR(ReadAllowed(value, path, tools, input));
    } else {
      ASSIGN_OR_RETURN(input.tool_name, ReadToolName(value, path, tools));
      if (input.tool_name.empty())
        return InvalidArgument(path,
                               fmt::format("no model here can call a tool of type \"{}\"", type));
      input.tool_choice = text::ToolChoice::kNamed;
    }
  } else if (value.kind == JsonKind::kString) {
    RETURN_IF_ERROR(ReadToolMode(value.text, path, input));
  } else {
    return WrongKind(value, path, "a string or an object");
  }
  if (text::MustCall(input.tool_choice) && !abilities.tools)
    return InvalidArgument(path,
                           "this model calls no tools that way; only \"none\" and \"auto\" "
                           "are taken");
  return base::OkStatus();
}

}  // namespace plumb::api
