// text/prompt_place.cc
// One character more at the place, encoded again, and compared.
#include "text/prompt_place.h"

#include <algorithm>

namespace plumb::text {
namespace {

// The answer would go on from there, or what follows is no text of the message's.
bool IsEnd(ConversationPlace place, const ChatInput& input) {
  const auto& messages = input.messages;
  if (place.message >= messages.size()) return true;
  if (place.message + 1 < messages.size()) return false;
  return place.bytes >= messages.back().content.size();
}

}  // namespace

uint32_t TokensBefore(ConversationPlace place, const ChatFormat& format, const ChatInput& input,
                      const ChatPrompt& prompt, const TokenScope& scope) {
  const auto all = static_cast<uint32_t>(prompt.tokens.size());
  if (IsEnd(place, input)) return all;
  ChatInput other = input;
  ChatMessage& message = other.messages[place.message];
  // Where content has parts, formats look at those.
  if (!message.parts.empty()) return all;
  const size_t bytes = std::min(place.bytes, message.content.size());
  const bool taken = bytes < message.content.size() && message.content[bytes] == 'x';
  message.content.insert(bytes, 1, taken ? 'y' : 'x');
  // It may be longer than the prompt by what a character takes.
  const auto compared = format.Encode(other, all + 8, scope);
  if (!compared.ok()) return all;
  const auto end = std::ranges::mismatch(prompt.tokens, compared->tokens).in1;
  return static_cast<uint32_t>(end - prompt.tokens.begin());
}

}  // namespace plumb::text
