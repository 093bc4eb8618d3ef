// cli/model_text.h
// What a model needs beside its weights to answer: tokenizer and chat format, built from its file.
// Serving builds them to use them, inspection to see whether serving could.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/checkpoint.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace plumb::cli {

constexpr std::string_view kToolFormatField = "tool-format";

// A resource type that moves.
struct ModelText {
  std::unique_ptr<text::Tokenizer> tokenizer;
  // By the model's architecture, or the template it carries; for one that has neither: a format
  // that refuses every conversation, saying so.
  std::unique_ptr<text::ChatFormat> chat_format;
  bool can_chat = false;
};

// kNotFound: no tokenizer; kUnsupported: a kind of tokenizer that is not known here, or one without
// the tokens that the architecture's chats need; kCorrupt,
// kInvalidArgument: a tokenizer or template that cannot be read. Messages say which of the two.
// kInvalidArgument, field kToolFormatField: no such format, or a model that has one of its own.
base::Result<ModelText> LoadModelText(const model::Checkpoint& file,
                                      const std::string& tool_format = "auto");

}  // namespace plumb::cli
