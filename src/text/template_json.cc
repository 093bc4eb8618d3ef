// text/template_json.cc: one object for each message and tool; behind text/template_json.h. Texts
// are masked one by one, after JSON in them has been read, since escapes may spell anything.
#include "text/template_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "text/deepseek_v41_tools.h"
#include "text/ordered_json.h"

namespace plumb::text {
namespace {

using nlohmann::ordered_json;

class Writer {
 public:
  explicit Writer(const TemplateContext& context) : context_(context) {}

  base::Result<ordered_json> Write() {
    ordered_json messages = ordered_json::array();
    for (size_t i = 0; i < context_.messages.size(); ++i) {
      ASSIGN_OR_RETURN(ordered_json message, Message(i));
      messages.push_back(std::move(message));
    }
    ordered_json out = {{"messages", std::move(messages)},
                        {"add_generation_prompt", context_.add_generation_prompt}};
    // tools and documents are defined and none, as transformers leaves them when not given.
    out["tools"] = nullptr;
    if (!context_.tools.empty()) {
      ASSIGN_OR_RETURN(out["tools"], Tools());
    }
    out["documents"] = nullptr;
    if (context_.thinking) out["enable_thinking"] = *context_.thinking;
    if (!context_.effort.empty()) out["reasoning_effort"] = Text(context_.effort);
    return out;
  }

 private:
  std::string Text(std::string_view text) const {
    return context_.mask == nullptr ? std::string(text) : context_.mask->Mask(text);
  }

  // Recursion is bounded by OrderedJson::kDepthMax.
  ordered_json Value(const OrderedJson& value) const {
    using Kind = OrderedJson::Kind;
    switch (value.kind) {
      case Kind::kNull:
        return nullptr;
      case Kind::kFalse:
      case Kind::kTrue:
        return value.kind == Kind::kTrue;
      case Kind::kNumber:
        return ordered_json::parse(value.text, nullptr, /*allow_exceptions=*/false);
      case Kind::kString:
        return Text(value.text);
      case Kind::kArray: {
        ordered_json items = ordered_json::array();
        for (const OrderedJson& item : value.items) items.push_back(Value(item));
        return items;
      }
      case Kind::kObject: {
        ordered_json members = ordered_json::object();
        for (const auto& [name, member] : value.members) members[Text(name)] = Value(member);
        return members;
      }
    }
    return nullptr;
  }

  base::Result<ordered_json> Tools() const {
    ordered_json tools = ordered_json::array();
    for (size_t i = 0; i < context_.tools.size(); ++i) {
      const ToolSpec& tool = context_.tools[i];
      ASSIGN_OR_RETURN(const OrderedJson parameters,
                       ReadToolParameters(tool, fmt::format("tools[{}].function", i)));
      ordered_json function = {{"name", Text(tool.name)}};
      if (!tool.description.empty()) function["description"] = Text(tool.description);
      function["parameters"] = Value(parameters);
      tools.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    return tools;
  }

  base::Result<ordered_json> Message(size_t index) {
    const ChatMessage& message = context_.messages[index];
    ordered_json out = {{"role", message.role}, {"content", Text(message.content)}};
    if (!message.name.empty()) out["name"] = Text(message.name);
    if (!message.reasoning.empty()) out["reasoning_content"] = Text(message.reasoning);
    if (!message.tool_calls.empty()) {
      ASSIGN_OR_RETURN(out["tool_calls"], Calls(message, index));
    }
    if (message.role == "tool") {
      const auto call = std::ranges::find(calls_, message.tool_call_id, &Call::id);
      if (call != calls_.end()) out["name"] = Text(call->name);
      const std::string& id = call != calls_.end() ? call->shown : message.tool_call_id;
      if (!id.empty()) out["tool_call_id"] = Text(id);
    }
    return out;
  }

  base::Result<ordered_json> Calls(const ChatMessage& message, size_t index) {
    ordered_json calls = ordered_json::array();
    calls_.clear();
    for (size_t i = 0; i < message.tool_calls.size(); ++i) {
      const ToolCall& call = message.tool_calls[i];
      auto read = OrderedJson::Parse(call.arguments);
      if (!read.ok() && read.status().reason() == kJsonTooLarge) {
        return base::InvalidArgument(
            fmt::format("messages[{}].tool_calls[{}].function.arguments", index, i),
            read.status().message());
      }
      const bool object = read.ok() && read->kind == OrderedJson::Kind::kObject;
      const std::string id = context_.number_calls ? fmt::format("{:09}", ++number_) : call.id;
      calls_.push_back({.id = call.id, .shown = id, .name = call.name});
      ordered_json function = {{"name", Text(call.name)}};
      function["arguments"] = object ? Value(*read) : ordered_json(Text(call.arguments));
      ordered_json one = ordered_json::object();
      if (!id.empty()) one["id"] = Text(id);
      one["type"] = "function";
      one["function"] = std::move(function);
      calls.push_back(std::move(one));
    }
    return calls;
  }

  // A call of the latest message that made any.
  struct Call {
    std::string id;
    std::string shown;
    std::string name;
  };

  const TemplateContext& context_;
  std::vector<Call> calls_;
  uint32_t number_ = 0;
};

}  // namespace

base::Result<ordered_json> TemplateJson(const TemplateContext& context) {
  return Writer(context).Write();
}

}  // namespace plumb::text
