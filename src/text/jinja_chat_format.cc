// text/jinja_chat_format.cc
// Mask, render, encode; behind text/jinja_chat_format.h.
#include "text/jinja_chat_format.h"

#include <string>
#include <utility>

#include "text/control_mask.h"
#include "text/prompt_segments.h"

namespace plumb::text {

using base::InvalidArgument;

base::Result<ChatPrompt> JinjaChatFormat::Encode(const ChatInput& input, uint32_t tokens_max,
                                                 const TokenScope& scope) const {
  ControlMask mask(tokenizer_);
  std::vector<ChatMessage> masked(input.messages.begin(), input.messages.end());
  for (ChatMessage& message : masked) {
    message.content = mask.Mask(message.content);
    message.name = mask.Mask(message.name);
  }
  ASSIGN_OR_RETURN(const std::string rendered,
                   template_->Render(masked, /*add_generation_prompt=*/true));
  RETURN_IF_ERROR(CheckPromptSize(rendered.size(), tokenizer_, tokens_max));
  auto tokens = mask.Encode(rendered, scope);
  if (!tokens.ok() && tokens.status().code() == base::Code::kInvalidArgument)
    return InvalidArgument("messages", tokens.status().message());
  if (!tokens.ok()) return tokens.status();
  if (tokens->empty()) return InvalidArgument("messages", "the messages give an empty prompt");
  ChatPrompt prompt;
  prompt.text = mask.Unmask(rendered);
  prompt.tokens = std::move(tokens).value();
  return prompt;
}

}  // namespace plumb::text
