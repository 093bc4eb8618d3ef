// api/responses_item.cc
// See responses_item.h. Members stand in the order of OpenAI's own answers.
#include "api/responses_item.h"

#include "base/check.h"

namespace plumb::api {

namespace {

// What an item takes besides its texts: the object, its control block, a place in lists and maps.
constexpr uint64_t kItemBytes = 512;

struct KindNames {
  std::string_view type;
  std::string_view id_prefix;
};

KindNames NamesOf(ItemKind kind) {
  switch (kind) {
    case ItemKind::kMessage:
      return {"message", "msg"};
    case ItemKind::kReasoning:
      return {"reasoning", "rs"};
    case ItemKind::kFunctionCall:
      return {"function_call", "fc"};
    case ItemKind::kFunctionOutput:
      return {"function_call_output", "fco"};
    case ItemKind::kCustomCall:
      return {"custom_tool_call", "ctc"};
    case ItemKind::kCustomOutput:
      return {"custom_tool_call_output", "ctco"};
  }
  CHECK(false) << "not an item's kind: " << static_cast<int>(kind);
}

void WriteInputText(JsonWriter& json, std::string_view text) {
  json.BeginObject().Key("type").String("input_text").Key("text").String(text).EndObject();
}

void WriteMessage(JsonWriter& json, const ResponsesItem& item, const ItemForm& form) {
  const bool answer = item.role == "assistant";
  const auto write = [&](std::string_view text) {
    answer ? WriteOutputText(json, text, form.logprobs) : WriteInputText(json, text);
  };
  json.Key("role").String(item.role).Key("content").BeginArray();
  const bool nothing_yet = item.status == ItemStatus::kInProgress && item.text.empty();
  if (item.parts.empty() && !nothing_yet) write(item.text);
  for (const std::string& part : item.parts) write(part);
  json.EndArray();
}

void WriteReasoning(JsonWriter& json, const ResponsesItem& item, const ItemForm& form) {
  json.Key("summary").BeginArray().EndArray().Key("content").BeginArray();
  if (!item.text.empty()) WriteReasoningText(json, item.text);
  json.EndArray();
  if (form.encrypted_content)
    json.Key("encrypted_content").String(std::string(kOpenReasoning) + item.text);
}

void WriteCall(JsonWriter& json, const ResponsesItem& item, std::string_view member) {
  json.Key("call_id").String(item.call_id).Key("name").String(item.name);
  if (!item.tool_space.empty()) json.Key("namespace").String(item.tool_space);
  json.Key(member).String(item.text);
}

void WriteOutput(JsonWriter& json, const ResponsesItem& item) {
  json.Key("call_id").String(item.call_id).Key("output");
  if (item.parts.empty()) {
    json.String(item.text);
    return;
  }
  json.BeginArray();
  for (const std::string& part : item.parts) WriteInputText(json, part);
  json.EndArray();
}

}  // namespace

uint64_t ResponsesItem::bytes() const {
  uint64_t sum = kItemBytes + id.size() + role.size() + call_id.size() + name.size() +
                 tool_space.size() + text.size();
  for (const std::string& part : parts) sum += sizeof(part) + part.size();
  return sum;
}

std::string_view ItemTypeName(ItemKind kind) { return NamesOf(kind).type; }
std::string_view ItemIdPrefix(ItemKind kind) { return NamesOf(kind).id_prefix; }

std::string_view ItemStatusName(ItemStatus status) {
  switch (status) {
    case ItemStatus::kInProgress:
      return "in_progress";
    case ItemStatus::kCompleted:
      return "completed";
    case ItemStatus::kIncomplete:
      return "incomplete";
  }
  CHECK(false) << "not a status: " << static_cast<int>(status);
}

void WriteItem(JsonWriter& json, const ResponsesItem& item, const ItemForm& form) {
  json.BeginObject().Key("id").String(item.id).Key("type").String(ItemTypeName(item.kind));
  json.Key("status").String(ItemStatusName(item.status));
  switch (item.kind) {
    case ItemKind::kMessage:
      WriteMessage(json, item, form);
      break;
    case ItemKind::kReasoning:
      WriteReasoning(json, item, form);
      break;
    case ItemKind::kFunctionCall:
      WriteCall(json, item, "arguments");
      break;
    case ItemKind::kCustomCall:
      WriteCall(json, item, "input");
      break;
    case ItemKind::kFunctionOutput:
    case ItemKind::kCustomOutput:
      WriteOutput(json, item);
      break;
  }
  json.EndObject();
}

void WriteOutputText(JsonWriter& json, std::string_view text, std::string_view logprobs) {
  json.BeginObject().Key("type").String("output_text").Key("text").String(text);
  json.Key("annotations").BeginArray().EndArray().Key("logprobs").Raw(logprobs).EndObject();
}

void WriteReasoningText(JsonWriter& json, std::string_view text) {
  json.BeginObject().Key("type").String("reasoning_text").Key("text").String(text).EndObject();
}

}  // namespace plumb::api
