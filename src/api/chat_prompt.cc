// api/chat_prompt.cc
// See chat_prompt.h.
#include "api/chat_prompt.h"

#include <string>

namespace plumb::api {

using base::InvalidArgument;

base::Result<std::vector<base::TokenId>> EncodeChat(std::span<const text::ChatMessage> messages,
                                                    const text::ChatTemplate& chat_template,
                                                    const text::Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::string prompt,
                   chat_template.Render(messages, /*add_generation_prompt=*/true));
  auto tokens = tokenizer.Encode(prompt, text::ControlTokens::kParse, /*add_special=*/false);
  if (!tokens.ok() && tokens.status().code() == base::Code::kInvalidArgument)
    return InvalidArgument("messages", tokens.status().message());
  if (tokens.ok() && tokens->empty())
    return InvalidArgument("messages", "the messages give an empty prompt");
  return tokens;
}

}  // namespace plumb::api
