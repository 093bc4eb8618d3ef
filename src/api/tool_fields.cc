// api/tool_fields.cc
// See tool_fields.h. Every object has a list of members that it takes; others are refused, since
// each would change the prompt.
#include "api/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

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
constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                         "high", "xhigh",   "max"};

Status Unknown(const std::string& path) {
  return InvalidArgument(path, fmt::format("{} is not a member that is known here", path));
}

// Of a member that has to be there.
Result<std::string> ReadText(const JsonValue& value, const std::string& path, size_t bytes_max) {
  ASSIGN_OR_RETURN(auto text, ReadString(value, path, bytes_max));
  if (!text) return WrongKind(value, path, "a string");
  return *std::move(text);
}

Status CheckIsFunction(const JsonValue& value, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string type, ReadText(value, path, kWordBytesMax));
  if (type == "function") return base::OkStatus();
  return InvalidArgument(path, fmt::format("{} must be \"function\"", path));
}

// The inner object of {"type": "function", "function": {...}}; its path is `path`.function.
Result<const JsonValue*> ReadFunction(const JsonValue& value, const std::string& path) {
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  const JsonValue* type = value.Find("type");
  if (type != nullptr) RETURN_IF_ERROR(CheckIsFunction(*type, MemberPath(path, "type")));
  const std::string function_path = MemberPath(path, "function");
  const JsonValue* function = value.Find("function");
  if (function == nullptr)
    return InvalidArgument(function_path, fmt::format("{} is missing", function_path));
  if (function->kind != JsonKind::kObject) return WrongKind(*function, function_path, "an object");
  return function;
}

Status CheckNamed(const std::string& name, const std::string& path) {
  if (!name.empty()) return base::OkStatus();
  const std::string name_path = MemberPath(MemberPath(path, "function"), "name");
  return InvalidArgument(name_path, fmt::format("{} is missing or empty", name_path));
}

Result<ToolSpec> ReadTool(const JsonValue& value, const std::string& path) {
  ASSIGN_OR_RETURN(const JsonValue* function, ReadFunction(value, path));
  for (const JsonMember& member : value.members) {
    if (member.name != "type" && member.name != "function")
      return Unknown(MemberPath(path, member.name));
  }
  ToolSpec tool;
  for (const JsonMember& member : function->members) {
    const std::string member_path = MemberPath(MemberPath(path, "function"), member.name);
    if (member.name == "name") {
      ASSIGN_OR_RETURN(tool.name, ReadText(member.value, member_path, kToolNameBytesMax));
    } else if (member.name == "description") {
      ASSIGN_OR_RETURN(auto text, ReadString(member.value, member_path, kToolTextBytesMax));
      tool.description = std::move(text).value_or("");
    } else if (member.name == "strict") {
      ASSIGN_OR_RETURN(const auto strict, ReadBool(member.value, member_path));
      tool.strict = strict.value_or(false);
    } else if (member.name == "parameters") {
      if (member.value.is_null()) continue;
      if (member.value.kind != JsonKind::kObject)
        return WrongKind(member.value, member_path, "a JSON Schema, an object");
      tool.parameters.clear();
      AppendJson(tool.parameters, member.value);
    } else {
      return Unknown(member_path);
    }
  }
  RETURN_IF_ERROR(CheckNamed(tool.name, path));
  return tool;
}

Result<ToolCall> ReadToolCall(const JsonValue& value, const std::string& path) {
  ASSIGN_OR_RETURN(const JsonValue* function, ReadFunction(value, path));
  ToolCall call;
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "id") {
      ASSIGN_OR_RETURN(call.id, ReadText(member.value, member_path, kIdBytesMax));
    } else if (member.name == "index") {  // of a streamed call, sent back as it came
      RETURN_IF_ERROR(ReadInteger(member.value, member_path, {0, INT32_MAX}));
    } else if (member.name != "type" && member.name != "function") {
      return Unknown(member_path);
    }
  }
  for (const JsonMember& member : function->members) {
    const std::string member_path = MemberPath(MemberPath(path, "function"), member.name);
    if (member.name == "name") {
      ASSIGN_OR_RETURN(call.name, ReadText(member.value, member_path, kToolNameBytesMax));
    } else if (member.name == "arguments") {
      ASSIGN_OR_RETURN(call.arguments, ReadText(member.value, member_path, kToolTextBytesMax));
    } else {
      return Unknown(member_path);
    }
  }
  RETURN_IF_ERROR(CheckNamed(call.name, path));
  return call;
}

}  // namespace

Result<std::vector<ToolSpec>> ReadTools(const JsonValue& value, const std::string& path) {
  RETURN_IF_ERROR(CheckArray(value, path, kToolsMax));
  std::vector<ToolSpec> tools;
  for (size_t i = 0; i < value.items.size(); ++i) {
    ASSIGN_OR_RETURN(ToolSpec tool, ReadTool(value.items[i], IndexPath(path, i)));
    tools.push_back(std::move(tool));
  }
  return tools;
}

Status ReadToolChoice(const JsonValue& value, const std::string& path, text::ChatInput& input) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind == JsonKind::kObject) {
    ASSIGN_OR_RETURN(const JsonValue* function, ReadFunction(value, path));
    const std::string name_path = MemberPath(MemberPath(path, "function"), "name");
    const JsonValue* name = function->Find("name");
    if (name == nullptr) return InvalidArgument(name_path, fmt::format("{} is missing", name_path));
    ASSIGN_OR_RETURN(input.tool_name, ReadText(*name, name_path, kToolNameBytesMax));
    input.tool_choice = text::ToolChoice::kNamed;
    return base::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string word, ReadText(value, path, kWordBytesMax));
  if (word == "auto") {
    input.tool_choice = text::ToolChoice::kAuto;
  } else if (word == "none") {
    input.tool_choice = text::ToolChoice::kNone;
  } else if (word == "required") {
    input.tool_choice = text::ToolChoice::kRequired;
  } else {
    return InvalidArgument(path, fmt::format("{} must be \"none\", \"auto\", \"required\" or an "
                                             "object that names a function",
                                             path));
  }
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
    if (member.name != "type") return Unknown(member_path);
    ASSIGN_OR_RETURN(const std::string word, ReadText(member.value, member_path, kWordBytesMax));
    if (word != "enabled" && word != "disabled") {
      return InvalidArgument(member_path,
                             fmt::format("{} must be \"enabled\" or \"disabled\"", member_path));
    }
    thinking = word == "enabled";
  }
  if (!thinking) {
    const std::string type_path = MemberPath(path, "type");
    return InvalidArgument(type_path, fmt::format("{} is missing", type_path));
  }
  if (budget && !*thinking)
    return InvalidArgument(budget_path, "a budget is for thinking that is \"enabled\"");
  input.thinking = thinking;
  if (budget) input.reasoning_tokens_max = static_cast<uint32_t>(*budget);
  return base::OkStatus();
}

}  // namespace plumb::api
