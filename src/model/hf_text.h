// model/hf_text.h
// What a Hugging Face folder says of text, as metadata: the tokenizer as GGUF's
// tokenizer.huggingface.json, the chat template as tokenizer.chat_template, and what stands beside
// them in other files under keys of our own. What they mean is for module text. Read next:
// model/hf_checkpoint.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/metadata.h"

namespace plumb::model {

constexpr uint64_t kHfTokenizerBytesMax = 128u << 20;
constexpr uint64_t kHfSmallFileBytesMax = 16u << 20;

constexpr std::string_view kHfTokenizerKey = "tokenizer.huggingface.json";
constexpr std::string_view kHfBosKey = "tokenizer.huggingface.bos_token";  // by name
constexpr std::string_view kHfEosKey = "tokenizer.huggingface.eos_token";  // by name
constexpr std::string_view kHfAddBosKey = "tokenizer.huggingface.add_bos_token";
constexpr std::string_view kHfAddEosKey = "tokenizer.huggingface.add_eos_token";
// Every id that ends an answer, from config.json and generation_config.json.
constexpr std::string_view kHfEndIdsKey = "tokenizer.huggingface.end_token_ids";
constexpr std::string_view kChatTemplateKey = "tokenizer.chat_template";
// The template for requests with tools, where a model has one of its own for them.
constexpr std::string_view kToolTemplateKey = "tokenizer.chat_template.tool_use";

// The files' texts; nothing for those that are not there, but for config.json.
struct HfTextFiles {
  std::string_view config;
  std::optional<std::string> tokenizer;          // tokenizer.json
  std::optional<std::string> tokenizer_config;   // tokenizer_config.json
  std::optional<std::string> generation_config;  // generation_config.json
  // chat_template.jinja, else default.jinja of additional_chat_templates; before what the
  // tokenizer's configuration says of both templates.
  std::optional<std::string> chat_template;
  std::optional<std::string> tool_template;  // tool_use.jinja of the same folder, which wins
};

// kCorrupt: no JSON, or a key of the wrong type; field() and message name file and key.
base::Status ReadHfText(const HfTextFiles& files, Metadata& metadata);

}  // namespace plumb::model
