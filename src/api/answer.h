// api/answer.h
// What an answer is, before a dialect shapes it: the parts of each sample in the order they came,
// how it ended, and what the whole took. Value types. Read next: api/answer_writer.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "text/answer_parser.h"

namespace plumb::api {

// What every answer carries, whatever its dialect.
struct AnswerHead {
  uint64_t number = 0;  // makes the ids of the answer and of what stands in it
  std::string model;    // as the caller spelled it
  int64_t created = 0;  // Unix seconds
  uint64_t seed = 0;    // below 2^63 reads as given; a negative one is shown as given, too
  bool logprobs = false;
  // An answer that is cut off ends with the context, before the length that was asked for.
  bool context_ends = false;
};

struct AnswerUsage {
  uint64_t prompt_tokens = 0;      // of all prompts
  uint64_t completion_tokens = 0;  // of all samples, end tokens included
  uint64_t cached_tokens = 0;      // of the prompts
  // Of the prompts, computed into pages that are stored: engine::Finish, by
  // GenerationRequest::cache_marks.
  std::array<uint64_t, engine::kHintsMax> stored_tokens{};
  uint64_t reasoning_tokens = 0;  // of completion_tokens, as text/reasoning_meter.h counts them
};

// How a sample ended.
struct SampleEnd {
  engine::FinishReason reason = engine::FinishReason::kStop;  // kStop or kLength
  bool by_model = false;            // by the model's own end, not by a stop string of the caller
  std::optional<std::string> stop;  // that stop string
  uint32_t completion_tokens = 0;
};

// One sample's whole answer.
struct SampleAnswer {
  std::vector<text::AnswerDelta> parts;  // as text::AppendDelta joins them
  // One for each generated token, the end token included; when asked for.
  std::vector<engine::TokenLogprob> logprobs;
  SampleEnd end;
};

}  // namespace plumb::api
