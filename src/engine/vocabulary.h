// engine/vocabulary.h
// What a checkpoint says of its tokenizer and chat template, in the terms of module text: a GGUF
// file's vocabulary (keys tokenizer.ggml.*), or a folder's tokenizer.json. Here, because text knows
// no model files and model knows no text.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/checkpoint.h"
#include "text/tokenizer.h"

namespace plumb::engine {

// Shapes and ranges are checked by text::Tokenizer, not here. kNotFound: the file has no tokenizer;
// kCorrupt: a key of the wrong type, or an id or kind out of its type's range.
base::Result<text::VocabularySpec> ReadVocabulary(const model::Checkpoint& file);

// The checkpoint's tokenizer, built from the vocabulary where there is one, else from
// tokenizer.huggingface.json. kNotFound: the checkpoint has neither; else the errors of
// ReadVocabulary and text::Tokenizer.
base::Result<std::unique_ptr<text::Tokenizer>> MakeTokenizer(const model::Checkpoint& file);

// Jinja sources, each empty when the file has none.
struct ChatTemplates {
  std::string chat;      // tokenizer.chat_template
  std::string tool_use;  // tokenizer.chat_template.tool_use
};
// kCorrupt: one is not a text.
base::Result<ChatTemplates> ReadChatTemplates(const model::Checkpoint& file);

}  // namespace plumb::engine
