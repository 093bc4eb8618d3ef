// api/chat_request.h
// The body of POST /v1/chat/completions as a typed struct whose every number is in range. The
// policy for fields: honoured, or known to be harmless and ignored (the list is in
// chat_request.cc), or refused with 400 by name. Nothing that would change the answer is dropped
// silently, and unknown names are refused, as OpenAI does. Read next: api/sampling_fields.h,
// api/message_fields.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/result.h"
#include "engine/request.h"
#include "text/chat_format.h"
#include "text/grammar.h"

namespace plumb::api {

struct ChatLimits {
  JsonLimits json;
  uint32_t messages_max = 4096;
  uint32_t content_parts_max = 1024;    // of one message
  uint32_t vocabulary_size = 1u << 31;  // ids at or above it are refused
  uint32_t deadline_ms_max = 600'000;
  text::ChatAbilities abilities = {};  // of the model's chat format; the rest is refused by name
};

// A value type.
struct ChatRequest {
  std::string model;      // as the caller spells it; not looked up yet
  text::ChatInput input;  // messages, tools, how to answer
  // `tokens_max` is not set here (it may depend on the prompt); `seed` only with seed_given.
  engine::SamplingParams sampling;
  bool seed_given = false;
  std::optional<uint32_t> tokens_max;  // nothing: up to the context's end
  uint32_t samples = 1;
  bool stream = false;
  bool include_usage = false;                // a last chunk with the usage
  std::optional<uint32_t> deadline_ms;       // extension field; nothing: the server's maximum
  std::optional<engine::Priority> priority;  // `priority`, else what `service_tier` stands for
  engine::Speculation speculation = engine::Speculation::kServer;
  // Of response_format and its kin; compiled by whoever has the tokenizer.
  std::optional<text::GrammarSpec> grammar;
};

// kInvalidArgument with the field's path; reason "request_too_large" for a body above the limit.
base::Result<ChatRequest> ParseChatRequest(std::string_view body, const ChatLimits& limits);

}  // namespace plumb::api
