// text/prompt_place.h
// Where in a prompt's tokens a place of its conversation is. Templates are programs and tokens
// cross what they put together, so no rule says where a text went; but a prompt up to a place is
// what it has in common with the prompt of the same conversation that goes on differently from
// there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/token_id.h"
#include "text/chat_format.h"
#include "text/chat_input.h"
#include "text/token_cache.h"

namespace plumb::text {

// Before byte `bytes` of the content of a message, which may be all of them: behind the content. A
// message with the number after the last one: the conversation's end.
struct ConversationPlace {
  size_t message = 0;
  size_t bytes = 0;
};

// How many of the first tokens of `prompt`, which the format made of `input`, go by what stands
// before the place alone. All of them where that cannot be told: at the end of the last message,
// and where the format does not take the conversation that it is compared with. Encodes that one:
// takes as long as the prompt did, less what the scope's cache knows of it.
uint32_t TokensBefore(ConversationPlace place, const ChatFormat& format, const ChatInput& input,
                      const ChatPrompt& prompt, const TokenScope& scope);

}  // namespace plumb::text
