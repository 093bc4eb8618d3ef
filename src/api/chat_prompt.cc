// api/chat_prompt.cc
// See chat_prompt.h.
#include "api/chat_prompt.h"

#include <fmt/format.h>

#include <string>

#include "text/control_mask.h"

namespace plumb::api {

using base::InvalidArgument;

base::Result<std::vector<base::TokenId>> EncodeChat(std::span<const text::ChatMessage> messages,
                                                    const text::ChatTemplate& chat_template,
                                                    const text::Tokenizer& tokenizer,
                                                    uint32_t context_max) {
  text::ControlMask mask(tokenizer);
  std::vector<text::ChatMessage> masked(messages.begin(), messages.end());
  for (text::ChatMessage& message : masked) {
    message.content = mask.Mask(message.content);
    message.name = mask.Mask(message.name);
  }
  ASSIGN_OR_RETURN(const std::string prompt,
                   chat_template.Render(masked, /*add_generation_prompt=*/true));
  const uint64_t tokens_min = prompt.size() / tokenizer.token_bytes_max();
  if (tokens_min > context_max) {
    return InvalidArgument(
               "messages",
               fmt::format("this model's maximum context length is {} tokens, but the messages "
                           "have at least {}; shorten them",
                           context_max, tokens_min))
        .WithReason("context_length_exceeded");
  }
  auto tokens = mask.Encode(prompt);
  if (!tokens.ok() && tokens.status().code() == base::Code::kInvalidArgument)
    return InvalidArgument("messages", tokens.status().message());
  if (tokens.ok() && tokens->empty())
    return InvalidArgument("messages", "the messages give an empty prompt");
  return tokens;
}

}  // namespace plumb::api
