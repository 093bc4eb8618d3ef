// api/completion_request.h
// The body of POST /v1/completions as a typed struct: texts or token ids that the model goes on
// with, without a chat format. Fields are honoured, ignored or refused by name, as in
// api/chat_request.h; the table is in completion_request.cc. Read next: api/completion_dialect.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/generation_request.h"
#include "base/result.h"

namespace plumb::api {

// OpenAI's limit for this endpoint.
constexpr uint32_t kCompletionLogprobsMax = 5;
constexpr uint32_t kCompletionTokensDefault = 16;
constexpr uint32_t kCompletionPromptsMax = 32;

// A value type. Its `samples` are those to compute (best_of); `sampling.logprobs` also where
// choosing among them needs it.
struct CompletionRequest : GenerationRequest {
  uint32_t choices = 1;        // `n`: the samples of each prompt that the answer has
  bool include_usage = false;  // a last chunk with the usage
  bool echo = false;           // the prompt stands before the answer
  bool logprobs = false;       // the answer shows them
  // max_tokens 0: nothing is answered. The engine has no such requests, so that one token is
  // generated and dropped by the writer.
  bool empty = false;
  std::string suffix;  // what stands after the answer; empty: nothing asked
};

// kInvalidArgument with the field's path; reason "request_too_large" for a body above the limit.
base::Result<CompletionRequest> ParseCompletionRequest(std::string_view body,
                                                       const RequestLimits& limits);

// The items of `value`, each an id below `vocabulary_size`; at least one.
base::Result<std::vector<base::TokenId>> ReadTokenIds(const JsonValue& value,
                                                      const std::string& path,
                                                      uint32_t vocabulary_size);

// The names of every field that has a meaning here, those included that are only refused.
std::vector<std::string_view> CompletionFieldNames();

}  // namespace plumb::api
