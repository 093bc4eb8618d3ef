// api/generation_request.h
// What a request for an answer asks for, in any dialect, as typed values whose every number is in
// range: a conversation or raw prompts, how to sample, how to answer. Read next: api/dialect.h (who
// makes one), api/generations.h (what becomes of it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/retention_fields.h"
#include "engine/request.h"
#include "text/chat_format.h"
#include "text/grammar.h"

namespace plumb::api {

struct RequestLimits {
  JsonLimits json;
  uint32_t messages_max = 4096;
  uint32_t content_parts_max = 1024;    // of one message
  uint32_t vocabulary_size = 1u << 31;  // ids at or above it are refused
  uint32_t deadline_ms_max = 600'000;
  text::ChatAbilities abilities = {};  // of the model's chat format; the rest is refused by name
};

// Prompts of one request: each is a request to the engine.
constexpr uint32_t kPromptsMax = 2048;

// A prompt that no chat format makes.
struct RawPrompt {
  std::string text;                   // control tokens count where they are spelled, but in inputs
                                      // of embeddings, which are characters
  std::vector<base::TokenId> tokens;  // instead of a text, when there are any
};

// A value type.
struct GenerationRequest {
  std::string model;      // as the caller spells it; not looked up yet
  text::ChatInput input;  // messages, tools, how to answer
  // Instead of `input`, when there are any; at most kPromptsMax.
  std::vector<RawPrompt> prompts;
  // `tokens_max` is not set here (it may depend on the prompt); `seed` only with seed_given.
  engine::SamplingParams sampling;
  bool seed_given = false;
  // The most that the caller wants; what the context leaves may be less. Nothing: all of that.
  std::optional<uint32_t> tokens_max;
  bool context_ends = false;  // AnswerHead; known with the prompt
  uint32_t samples = 1;       // of each prompt
  bool stream = false;
  bool prompt_logprobs = false;                      // engine::Request
  engine::Pooling pooling = engine::Pooling::kNone;  // likewise; then tokens_max is 0
  std::optional<uint32_t> deadline_ms;       // extension field; nothing: the server's maximum
  std::optional<engine::Priority> priority;  // `priority`, else what `service_tier` stands for
  engine::Speculation speculation = engine::Speculation::kServer;
  // How long prompts should be kept, by LastingMarks; at most engine::kHintsMax. Places are of
  // `input`.
  std::vector<CacheMark> cache_marks = {};
  // Of response_format and its kin; compiled by whoever has the tokenizer.
  std::optional<text::GrammarSpec> grammar;
};

}  // namespace plumb::api
