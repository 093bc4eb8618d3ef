// api/chat_prompt.h
// Messages to the model's prompt tokens, in one place for every dialect and for the command line,
// so that the same messages always give the same tokens.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace plumb::api {

// Renders with the generation prompt and encodes control tokens as such. The template writes the
// model's BOS itself where it wants one, as in the reference implementation of chat templates; the
// tokenizer adds none. kInvalidArgument, field "messages": the template refuses them, or the text
// is too long; kInternal: the template hit its limits. Thread: any. Takes time in proportion to the
// text: not for an I/O thread.
base::Result<std::vector<base::TokenId>> EncodeChat(std::span<const text::ChatMessage> messages,
                                                    const text::ChatTemplate& chat_template,
                                                    const text::Tokenizer& tokenizer);

}  // namespace plumb::api
