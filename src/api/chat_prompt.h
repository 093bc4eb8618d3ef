// api/chat_prompt.h
// Messages to the model's prompt tokens, in one place for every dialect and for the command line,
// so that the same messages always give the same tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace plumb::api {

// Renders with the generation prompt and encodes control tokens that the template writes as such;
// those that a message spells stay characters (text/control_mask.h). The template writes the
// model's BOS itself where it wants one, as in the reference implementation of chat templates; the
// tokenizer adds none. kInvalidArgument, field "messages": the template refuses them, or the text
// is so long that no tokenisation of it fits `context_max` (reason context_length_exceeded; found
// before the work of encoding); kInternal: the template hit its limits. Thread: any. Takes time in
// proportion to the text: not for an I/O thread.
base::Result<std::vector<base::TokenId>> EncodeChat(std::span<const text::ChatMessage> messages,
                                                    const text::ChatTemplate& chat_template,
                                                    const text::Tokenizer& tokenizer,
                                                    uint32_t context_max);

}  // namespace plumb::api
