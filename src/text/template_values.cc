// text/template_values.cc: one object for each message and tool; behind text/template_values.h.
// Texts are masked one by one, after JSON in them has been read, since escapes may spell anything.
#include "text/template_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "text/deepseek_v41_tools.h"

namespace plumb::text {

base::Status TemplateValues::Write(const TemplateContext& context) {
  context_ = context;
  const Container all = Open(PLUMB_VALUE_OBJECT);
  AddMember(all, "messages");
  const Container messages = Open(PLUMB_VALUE_LIST);
  for (size_t i = 0; i < context_.messages.size(); ++i) {
    AddItem(messages);
    RETURN_IF_ERROR(WriteMessage(i));
  }
  AddMember(all, "add_generation_prompt");
  PutConstant(context_.add_generation_prompt ? PLUMB_VALUE_TRUE : PLUMB_VALUE_FALSE);
  // tools and documents are defined and none, as transformers leaves them when not given.
  AddMember(all, "tools");
  if (context_.tools.empty()) {
    PutConstant(PLUMB_VALUE_NULL);
  } else {
    RETURN_IF_ERROR(WriteTools());
  }
  AddMember(all, "documents");
  PutConstant(PLUMB_VALUE_NULL);
  if (context_.thinking) {
    AddMember(all, "enable_thinking");
    PutConstant(*context_.thinking ? PLUMB_VALUE_TRUE : PLUMB_VALUE_FALSE);
  }
  if (!context_.effort.empty()) AddMasked(all, "reasoning_effort", context_.effort);
  return base::OkStatus();
}

TemplateValues::Container TemplateValues::Open(uint8_t kind) {
  PutConstant(kind);
  return Container{values_.size() - 1};
}

void TemplateValues::AddMember(Container object, std::string_view name) {
  AddItem(object);
  PutText(name);
}

void TemplateValues::AddText(Container object, std::string_view name, std::string_view text) {
  AddMember(object, name);
  PutText(text);
}

void TemplateValues::AddMasked(Container object, std::string_view name, std::string_view text) {
  AddMember(object, name);
  PutMasked(text);
}

void TemplateValues::PutText(std::string_view text) {
  values_.push_back({.kind = PLUMB_VALUE_TEXT, .text = View(text), .count = 0});
}

void TemplateValues::PutMasked(std::string_view text) {
  PutText(context_.mask == nullptr ? text : context_.mask->Mask(text));
}

// `text` as OrderedJson writes it: an integer beyond 64 bits with a sign is a float, as in the
// template language.
void TemplateValues::PutNumber(std::string_view text) {
  const char* const end = text.data() + text.size();
  int64_t integer = 0;
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, integer);
  if (error == std::errc() && stop == end) {
    values_.push_back({.kind = PLUMB_VALUE_INTEGER, .text = {}, .integer = integer});
  } else {
    std::from_chars(text.data(), end, number);
    values_.push_back({.kind = PLUMB_VALUE_DOUBLE, .text = {}, .number = number});
  }
}

// Recursion is bounded by OrderedJson::kDepthMax.
void TemplateValues::PutJson(const OrderedJson& value) {
  using Kind = OrderedJson::Kind;
  switch (value.kind) {
    case Kind::kNull:
      return PutConstant(PLUMB_VALUE_NULL);
    case Kind::kFalse:
      return PutConstant(PLUMB_VALUE_FALSE);
    case Kind::kTrue:
      return PutConstant(PLUMB_VALUE_TRUE);
    case Kind::kNumber:
      return PutNumber(value.text);
    case Kind::kString:
      return PutMasked(value.text);
    case Kind::kArray: {
      const Container list = Open(PLUMB_VALUE_LIST);
      for (const OrderedJson& item : value.items) {
        AddItem(list);
        PutJson(item);
      }
      return;
    }
    case Kind::kObject: {
      const Container object = Open(PLUMB_VALUE_OBJECT);
      for (const auto& [name, member] : value.members) {
        AddItem(object);
        PutMasked(name);
        PutJson(member);
      }
      return;
    }
  }
}

base::Status TemplateValues::WriteTools() {
  const Container tools = Open(PLUMB_VALUE_LIST);
  for (size_t i = 0; i < context_.tools.size(); ++i) {
    const ToolSpec& tool = context_.tools[i];
    ASSIGN_OR_RETURN(OrderedJson parameters,
                     ReadToolParameters(tool, fmt::format("tools[{}].function", i)));
    AddItem(tools);
    const Container one = Open(PLUMB_VALUE_OBJECT);
    AddText(one, "type", "function");
    AddMember(one, "function");
    const Container function = Open(PLUMB_VALUE_OBJECT);
    AddMasked(function, "name", tool.name);
    if (!tool.description.empty()) AddMasked(function, "description", tool.description);
    AddMember(function, "parameters");
    PutJson(trees_.emplace_back(std::move(parameters)));
  }
  return base::OkStatus();
}

base::Status TemplateValues::WriteMessage(size_t index) {
  const ChatMessage& message = context_.messages[index];
  const Container out = Open(PLUMB_VALUE_OBJECT);
  AddText(out, "role", message.role);
  AddMasked(out, "content", message.content);
  const Call* answered = nullptr;
  if (message.role == "tool") {
    const auto call = std::ranges::find(calls_, message.tool_call_id, &Call::id);
    if (call != calls_.end()) answered = &*call;
  }
  const std::string_view name = answered != nullptr ? answered->name : message.name;
  if (!name.empty() || answered != nullptr) AddMasked(out, "name", name);
  if (!message.reasoning.empty()) AddMasked(out, "reasoning_content", message.reasoning);
  if (!message.tool_calls.empty()) {
    AddMember(out, "tool_calls");
    RETURN_IF_ERROR(WriteCalls(index));
  }
  if (message.role != "tool") return base::OkStatus();
  const std::string_view id = answered != nullptr ? answered->shown : message.tool_call_id;
  if (!id.empty()) AddMasked(out, "tool_call_id", id);
  return base::OkStatus();
}

base::Status TemplateValues::WriteCalls(size_t index) {
  const std::vector<ToolCall>& made = context_.messages[index].tool_calls;
  const Container calls = Open(PLUMB_VALUE_LIST);
  calls_.clear();
  for (size_t i = 0; i < made.size(); ++i) {
    const ToolCall& call = made[i];
    std::string_view id = call.id;
    if (context_.number_calls) id = texts_.emplace_back(fmt::format("{:09}", ++number_));
    calls_.push_back({.id = call.id, .shown = id, .name = call.name});
    AddItem(calls);
    const Container one = Open(PLUMB_VALUE_OBJECT);
    if (!id.empty()) AddMasked(one, "id", id);
    AddText(one, "type", "function");
    AddMember(one, "function");
    const Container function = Open(PLUMB_VALUE_OBJECT);
    AddMasked(function, "name", call.name);
    RETURN_IF_ERROR(WriteArguments(function, index, i));
  }
  return base::OkStatus();
}

// The object that they are, else their text.
base::Status TemplateValues::WriteArguments(Container function, size_t index, size_t call) {
  const std::string& arguments = context_.messages[index].tool_calls[call].arguments;
  auto read = OrderedJson::Parse(arguments);
  if (!read.ok() && read.status().reason() == kJsonTooLarge) {
    return base::InvalidArgument(
        fmt::format("messages[{}].tool_calls[{}].function.arguments", index, call),
        read.status().message());
  }
  AddMember(function, "arguments");
  if (read.ok() && read->kind == OrderedJson::Kind::kObject) {
    PutJson(trees_.emplace_back(*std::move(read)));
  } else {
    PutMasked(arguments);
  }
  return base::OkStatus();
}

}  // namespace plumb::text
