// text/chat_template.h
// Messages to one prompt text, by the Jinja template that a model carries, over the crate
// minijinja. The template is untrusted input: no loader, no file access, a step limit and an output
// limit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/chat_input.h"

namespace plumb::text {

// What the template may refer to besides the messages.
struct TemplateVariables {
  std::string bos_token;
  std::string eos_token;
  std::string date;  // "29 Nov 2026" for strftime_now; empty = the template sees a fixed epoch date
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

  // Of each message role, content and name. kInvalidArgument (field "messages"): the template
  // raised an exception (its own words, cut at 300 characters) or does not take these messages;
  // kInternal: step or output limit hit.
  base::Result<std::string> Render(std::span<const ChatMessage> messages,
                                   bool add_generation_prompt) const;

  std::string_view source() const;

  static constexpr uint64_t kSourceBytesMax = 1u << 20;
  static constexpr uint64_t kOutputBytesMax = 16u << 20;

 private:
  struct State;
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plumb::text
