// cli/model_text.h
// What a model needs beside its weights to answer: tokenizer and chat template, built from its
// file. Serving builds them to use them, inspection to see whether serving could.
#pragma once

#include <memory>

#include "base/result.h"
#include "model/checkpoint.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace plumb::cli {

// A resource type that moves.
struct ModelText {
  std::unique_ptr<text::Tokenizer> tokenizer;
  // For a model without one: a template that refuses every conversation, saying so.
  std::unique_ptr<text::ChatTemplate> chat_template;
  bool can_chat = false;
};

// kNotFound: no tokenizer; kUnsupported: a kind of tokenizer that is not known here; kCorrupt,
// kInvalidArgument: a tokenizer or template that cannot be read. Messages say which of the two.
base::Result<ModelText> LoadModelText(const model::Checkpoint& file);

}  // namespace plumb::cli
