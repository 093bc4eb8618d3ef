// api/responses_item.h
// One item of a conversation as the Responses API has it: a message, a reasoning, a call of a tool
// or its output; of what is asked and of what is answered alike, so that an answer can be sent
// back, kept and listed. Read next: api/responses_input.h (from JSON, and to a model's messages),
// api/responses_writer.h (from a model's answer).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/json_writer.h"

namespace plumb::api {

enum class ItemKind : uint8_t {
  kMessage,
  kReasoning,
  kFunctionCall,
  kFunctionOutput,
  kCustomCall,
  kCustomOutput,
};

enum class ItemStatus : uint8_t { kInProgress, kCompleted, kIncomplete };

// A value type. Only the fields of its kind are set.
struct ResponsesItem {
  ItemKind kind = ItemKind::kMessage;
  ItemStatus status = ItemStatus::kCompleted;
  std::string id = {};
  std::string role = {};        // of a message: "user", "assistant", "system", "developer"
  std::string call_id = {};     // of a call: its own; of an output: whose it is
  std::string name = {};        // of a call
  std::string tool_space = {};  // of a call of a tool that stands in a "namespace"; mostly empty
  // The text of a message or a reasoning, the arguments or the input of a call, or an output.
  std::string text = {};
  // Instead of `text`, where a message or an output was given in several parts.
  std::vector<std::string> parts = {};

  // About what it takes in memory.
  uint64_t bytes() const;
};

// Conversations share their items, which never change.
using ItemList = std::vector<std::shared_ptr<const ResponsesItem>>;

struct ItemForm {
  // "encrypted_content" of a reasoning: its text behind kOpenReasoning. For clients that send back
  // only that.
  bool encrypted_content = false;
  std::string_view logprobs = "[]";  // of a message's text, a JSON array
};

// What stands before a reasoning's text in "encrypted_content". Nothing is secret there, and the
// name says so: the text stands in "content" as well.
constexpr std::string_view kOpenReasoning = "plumb.open.1:";

// "message", "function_call", ...
std::string_view ItemTypeName(ItemKind kind);
// "msg", "fc", ...: what its ids begin with.
std::string_view ItemIdPrefix(ItemKind kind);
std::string_view ItemStatusName(ItemStatus status);

// The item as the API shows it.
void WriteItem(JsonWriter& json, const ResponsesItem& item, const ItemForm& form = {});
// A part of an answer's message: {"type": "output_text", ...}.
void WriteOutputText(JsonWriter& json, std::string_view text, std::string_view logprobs = "[]");
// A part of a reasoning: {"type": "reasoning_text", ...}.
void WriteReasoningText(JsonWriter& json, std::string_view text);

}  // namespace plumb::api
