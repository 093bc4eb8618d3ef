// text/deepseek_v41_tools.cc: declarations and calls, behind text/deepseek_v41_tools.h. The words
// are those the model was trained on.
#include "text/deepseek_v41_tools.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/ordered_json.h"

namespace plumb::text {
namespace {

using base::InvalidArgument;
using Kind = OrderedJson::Kind;

constexpr size_t kNameBytesMax = 64;

constexpr std::string_view kToolsHead =
    "## Tools\n\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by "
    "writing a \"<｜DSML｜ calls>\" block like the following:\n\n"
    "<｜DSML｜ calls>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME\">\n"
    "<｜DSML｜ parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE"
    "</｜DSML｜ parameter>\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "</｜DSML｜ calls>\n\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types "
    "(numbers, booleans, arrays, objects), pass the value in JSON format and set "
    "`string=\"false\"`.\n\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning "
    "inside <think>...</think> BEFORE any tool calls or final response.\n\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n\n"
    "### Available Tool Schemas\n\n";
constexpr std::string_view kToolsTail =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
    "calls.\n";

// An object's members are all required and no others are allowed; in every schema inside likewise,
// but for those that a value must not or need not meet. An object whose members have names that are
// not known can have no such form. Recursion is bounded by OrderedJson::kDepthMax.
base::Status MakeStrict(OrderedJson& schema, const std::string& path) {
  const OrderedJson* type = schema.Find("type");
  const OrderedJson* others = schema.Find("additionalProperties");
  OrderedJson* properties = schema.Find("properties");
  const bool has_properties = properties != nullptr && properties->kind == Kind::kObject;
  if (others != nullptr && others->kind != Kind::kFalse) {
    return InvalidArgument(path + ".additionalProperties",
                           "a strict tool names every member of its objects; leave "
                           "additionalProperties out, or the tool's strict");
  }
  if (has_properties || (type != nullptr && type->text == "object")) {
    OrderedJson required{.kind = Kind::kArray};
    if (has_properties) {
      for (const auto& [name, value] : properties->members)
        required.items.push_back(OrderedJson::String(name));
    }
    schema.Set("additionalProperties", OrderedJson::Bool(false));
    if (has_properties) schema.Set("required", std::move(required));
  }
  for (const char* of_schemas : {"properties", "patternProperties", "$defs", "definitions"}) {
    OrderedJson* member = schema.Find(of_schemas);
    if (member == nullptr) continue;
    for (auto& [name, value] : member->members)
      RETURN_IF_ERROR(MakeStrict(value, fmt::format("{}.{}.{}", path, of_schemas, name)));
  }
  for (const char* of_schema :
       {"items", "prefixItems", "anyOf", "oneOf", "allOf", "then", "else"}) {
    OrderedJson* member = schema.Find(of_schema);
    if (member == nullptr) continue;
    const std::string name = fmt::format("{}.{}", path, of_schema);
    if (member->kind == Kind::kObject) RETURN_IF_ERROR(MakeStrict(*member, name));
    for (size_t i = 0; i < member->items.size(); ++i)
      RETURN_IF_ERROR(MakeStrict(member->items[i], fmt::format("{}[{}]", name, i)));
  }
  return base::OkStatus();
}

base::Status WriteTool(PromptWriter& writer, const ToolSpec& tool, const std::string& path) {
  if (!IsToolName(tool.name)) {
    return InvalidArgument(path + ".name",
                           "the name of a tool has 1 to 64 letters, digits, '_' and '-'");
  }
  ASSIGN_OR_RETURN(OrderedJson parameters, ReadToolParameters(tool, path));
  OrderedJson line{.kind = Kind::kObject};
  line.Set("name", OrderedJson::String(tool.name));
  line.Set("description", OrderedJson::String(tool.description));
  line.Set("parameters", std::move(parameters));
  std::string json;
  AppendPythonJson(json, line);
  writer.Text(json);
  return base::OkStatus();
}

void WriteParameter(PromptWriter& writer, std::string_view name, const OrderedJson& value) {
  const bool is_string = value.kind == Kind::kString;
  writer.Template("<｜DSML｜ parameter name=\"").Text(name).Template("\" string=\"");
  writer.Template(is_string ? "true" : "false").Template("\">");
  if (is_string) {
    writer.Text(value.text);
  } else {
    std::string json;
    AppendPythonJson(json, value);
    writer.Text(json);
  }
  writer.Template("</｜DSML｜ parameter>");
}

// What is no JSON object is one parameter named "arguments", as it is.
base::Result<OrderedJson> ReadArguments(const std::string& arguments, const std::string& field) {
  auto parsed = OrderedJson::Parse(arguments);
  if (parsed.ok() && parsed->kind == Kind::kObject) return parsed;
  if (parsed.status().reason() == kJsonTooLarge)
    return InvalidArgument(field, parsed.status().message());
  OrderedJson object{.kind = Kind::kObject};
  object.Set("arguments", OrderedJson::String(arguments));
  return object;
}

}  // namespace

bool IsToolName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, allowed);
}

base::Result<OrderedJson> ReadToolParameters(const ToolSpec& tool, const std::string& path) {
  auto parameters = OrderedJson::Parse(tool.parameters);
  if (!parameters.ok() || parameters->kind != Kind::kObject) {
    return InvalidArgument(path + ".parameters",
                           "the parameters of a tool are a JSON object: " +
                               (parameters.ok() ? "this is none" : parameters.status().message()));
  }
  if (tool.strict) RETURN_IF_ERROR(MakeStrict(*parameters, path + ".parameters"));
  return parameters;
}

base::Status WriteDeepseekTools(PromptWriter& writer, std::span<const ToolSpec> tools) {
  writer.Template(kToolsHead);
  for (size_t i = 0; i < tools.size(); ++i) {
    if (i > 0) writer.Template("\n");
    RETURN_IF_ERROR(WriteTool(writer, tools[i], fmt::format("tools[{}].function", i)));
  }
  writer.Template(kToolsTail);
  return base::OkStatus();
}

base::Status WriteDeepseekCalls(PromptWriter& writer, std::span<const ToolCall> calls,
                                const std::string& path) {
  writer.Template(kDeepseekCalls).Template("\n");
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string call_path = fmt::format("{}[{}].function", path, i);
    if (!IsToolName(calls[i].name)) {
      return InvalidArgument(call_path + ".name",
                             "the name of a tool has 1 to 64 letters, digits, '_' and '-'");
    }
    ASSIGN_OR_RETURN(const OrderedJson arguments,
                     ReadArguments(calls[i].arguments, call_path + ".arguments"));
    writer.Template("<｜DSML｜ invoke name=\"").Text(calls[i].name).Template("\">\n");
    for (size_t j = 0; j < arguments.members.size(); ++j) {
      if (j > 0) writer.Template("\n");
      WriteParameter(writer, arguments.members[j].first, arguments.members[j].second);
    }
    writer.Template("\n").Template(kDeepseekInvokeEnd).Template("\n");
  }
  writer.Template("</｜DSML｜ calls>");
  return base::OkStatus();
}

base::Result<std::string> AsPythonJson(std::string_view json, const std::string& field) {
  const auto parsed = OrderedJson::Parse(json);
  if (!parsed.ok()) return InvalidArgument(field, field + ": " + parsed.status().message());
  std::string printed;
  AppendPythonJson(printed, *parsed);
  return printed;
}

}  // namespace plumb::text
