// text/template_values.h
// What a chat template sees of a conversation: messages, tools and calls in the shape that
// transformers gives them, written flat for the Rust library (plumb_value). Texts stay where the
// caller has them, since a conversation can be long. Internal to text. Read next:
// text/chat_template.h.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/chat_template.h"
#include "text/ordered_json.h"
#include "text/rust.h"

namespace plumb::text {

// A resource type; borrows the context of Write and all that it borrows. Thread: one at a time.
class TemplateValues {
 public:
  TemplateValues() = default;
  TemplateValues(const TemplateValues&) = delete;
  TemplateValues& operator=(const TemplateValues&) = delete;

  // Once. kInvalidArgument: as ChatTemplate::Render; or the arguments of a call hold more JSON than
  // is read (field "messages[i].tool_calls[j].function.arguments").
  base::Status Write(const TemplateContext& context);

  // One object. Valid until this object ends.
  std::span<const plumb_value> values() const { return values_; }

 private:
  // A call of the latest message that made any.
  struct Call {
    std::string_view id;
    std::string_view shown;
    std::string_view name;
  };
  // The place of a list or an object in values_.
  enum class Container : size_t {};

  Container Open(uint8_t kind);
  void AddItem(Container list) { ++values_[static_cast<size_t>(list)].count; }
  // Its value is written next.
  void AddMember(Container object, std::string_view name);
  // A member whose value is a text of ours, and one of the caller's.
  void AddText(Container object, std::string_view name, std::string_view text);
  void AddMasked(Container object, std::string_view name, std::string_view text);

  void PutText(std::string_view text);
  void PutMasked(std::string_view text);
  void PutConstant(uint8_t kind) { values_.push_back({.kind = kind, .text = {}, .count = 0}); }
  void PutNumber(std::string_view text);
  void PutJson(const OrderedJson& value);

  base::Status WriteTools();
  base::Status WriteMessage(size_t index);
  base::Status WriteCalls(size_t index);
  base::Status WriteArguments(Container function, size_t index, size_t call);

  TemplateContext context_;
  std::vector<plumb_value> values_;
  std::vector<Call> calls_;
  uint32_t number_ = 0;
  // What values_ borrows and the caller does not have.
  std::deque<std::string> texts_;
  std::deque<OrderedJson> trees_;
};

}  // namespace plumb::text
