// engine/vocabulary.h
// What a GGUF file says of its tokenizer (keys tokenizer.ggml.*) and chat template, copied into the
// terms of module text. Here, because text knows no model files and model knows no text.
#pragma once

#include <string>

#include "base/result.h"
#include "model/checkpoint.h"
#include "text/tokenizer.h"

namespace plumb::engine {

// Shapes and ranges are checked by text::Tokenizer, not here. kNotFound: the file has no tokenizer;
// kCorrupt: a key of the wrong type, or an id or kind out of its type's range.
base::Result<text::VocabularySpec> ReadVocabulary(const model::Checkpoint& file);

// The Jinja source of tokenizer.chat_template; empty when the file has none. kCorrupt: not a text.
base::Result<std::string> ReadChatTemplate(const model::Checkpoint& file);

}  // namespace plumb::engine
