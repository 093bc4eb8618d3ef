// text/jinja_chat_format.h
// The chat format of most models: the Jinja template that they carry (text/chat_template.h), or the
// two of them, where tools have one of their own. What a message spells stays text
// (text/control_mask.h). Tools and reasoning as far as the template has them
// (text/template_tools.h); answers are read by text/template_answer_parser.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "text/chat_format.h"
#include "text/chat_template.h"
#include "text/template_tools.h"
#include "text/tokenizer.h"

namespace plumb::text {

class JinjaChatFormat final : public ChatFormat {
 public:
  // kInvalidArgument, field "tool-format": the template shows its model no tools, so no syntax of
  // calls can be chosen. `tool_template` is for conversations with tools, or calls and results of
  // earlier ones; null: they have the other one, too.
  static base::Result<std::unique_ptr<JinjaChatFormat>> Create(
      std::unique_ptr<ChatTemplate> chat_template, const Tokenizer& tokenizer,
      const ToolFormat& tool_format = {}, std::unique_ptr<ChatTemplate> tool_template = nullptr);

  std::string_view id() const override { return id_; }
  ChatAbilities abilities() const override {
    return {.tools = traits_.calls.has_value(), .reasoning = reasons_ || traits_.reasons};
  }
  // The template writes the model's BOS itself where it wants one, as in the reference
  // implementation of chat templates; the tokenizer adds none.
  using ChatFormat::Encode;
  base::Result<ChatPrompt> Encode(const ChatInput& input, uint32_t tokens_max,
                                  const TokenScope& scope) const override;
  std::unique_ptr<AnswerParser> NewParser(const ChatPrompt& prompt) const override;

 private:
  JinjaChatFormat(std::unique_ptr<ChatTemplate> chat_template,
                  std::unique_ptr<ChatTemplate> tool_template, const Tokenizer& tokenizer,
                  const TemplateTraits& traits, bool reasons);

  const std::unique_ptr<const ChatTemplate> template_;
  const std::unique_ptr<const ChatTemplate> tool_template_;  // null: template_ is for all
  const std::string id_;                                     // both sources
  const Tokenizer& tokenizer_;
  const TemplateTraits traits_;  // of the template for tools
  const bool reasons_;           // template_ does
};

}  // namespace plumb::text
