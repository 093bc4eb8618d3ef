// text/jinja_chat_format.h
// The chat format of most models: the Jinja template that they carry (text/chat_template.h). What a
// message spells stays text (text/control_mask.h); the answer is content, all of it.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "text/chat_format.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace plumb::text {

class JinjaChatFormat final : public ChatFormat {
 public:
  JinjaChatFormat(std::unique_ptr<ChatTemplate> chat_template, const Tokenizer& tokenizer)
      : template_(std::move(chat_template)), tokenizer_(tokenizer) {}

  std::string_view id() const override { return template_->source(); }
  ChatAbilities abilities() const override { return {}; }
  // The template writes the model's BOS itself where it wants one, as in the reference
  // implementation of chat templates; the tokenizer adds none.
  using ChatFormat::Encode;
  base::Result<ChatPrompt> Encode(const ChatInput& input, uint32_t tokens_max,
                                  const TokenScope& scope) const override;
  std::unique_ptr<AnswerParser> NewParser(const ChatPrompt&) const override {
    return std::make_unique<PlainAnswerParser>();
  }

 private:
  const std::unique_ptr<const ChatTemplate> template_;
  const Tokenizer& tokenizer_;
};

}  // namespace plumb::text
