// text/chat_template.h
// Messages to one prompt text, by the Jinja template that a model carries, over the crate
// minijinja. The template is untrusted input: no loader, no file access, a step limit and an output
// limit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/chat_input.h"
#include "text/control_mask.h"

namespace plumb::text {

// What the template may refer to besides the messages.
struct TemplateVariables {
  std::string bos_token;
  std::string eos_token;
  std::string date;  // "29 Nov 2026" for strftime_now; empty = the template sees a fixed epoch date
};

// What one rendering is of. Borrows for the call.
struct TemplateContext {
  std::span<const ChatMessage> messages;
  bool add_generation_prompt = true;
  std::span<const ToolSpec> tools = {};  // none: the template sees no tools
  std::optional<bool> thinking = {};     // enable_thinking; nothing: undefined
  std::string_view effort = {};          // reasoning_effort; empty: undefined
  // The calls of all messages get ids of nine letters and digits, by their order in the
  // conversation, and results name those; else the ids are the caller's.
  bool number_calls = false;
  // Every text that the caller gave, before the template sees it; null: as it is.
  ControlMask* mask = nullptr;
};

// Immutable after construction. Thread: any.
class ChatTemplate {
 public:
  // kInvalidArgument: larger than kSourceBytesMax or not parsable (message with line).
  static base::Result<std::unique_ptr<ChatTemplate>> Compile(std::string_view source,
                                                             TemplateVariables variables);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // Of each message role, content, name, reasoning (reasoning_content), calls (arguments as the
  // object that they are, else as a text) and tool_call_id; each as far as it has any. Of a tool
  // name, description and parameters. kInvalidArgument (field "messages"): the template raised an
  // exception (its own words, cut at 300 characters) or does not take these messages; with the
  // field of a tool: its parameters are no JSON object; kInternal: step or output limit hit.
  base::Result<std::string> Render(const TemplateContext& context) const;
  base::Result<std::string> Render(std::span<const ChatMessage> messages,
                                   bool add_generation_prompt) const {
    return Render({.messages = messages, .add_generation_prompt = add_generation_prompt});
  }

  std::string_view source() const;

  static constexpr uint64_t kSourceBytesMax = 1u << 20;
  static constexpr uint64_t kOutputBytesMax = 16u << 20;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plumb::text
