// api/embedding_request.h
// The body of POST /v1/embeddings as a typed struct: texts or token ids whose hidden states are
// wanted as vectors. Fields are honoured, ignored or refused by name; the table is in
// embedding_request.cc. Read next: api/embedding_dialect.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "api/generation_request.h"
#include "base/result.h"
#include "engine/request.h"

namespace plumb::api {

// OpenAI's limit for this endpoint.
constexpr uint32_t kEmbeddingInputsMax = 2048;
// Numbers of one answer, all inputs together: it is kept whole, and is text of about 50 MB then.
constexpr uint64_t kEmbeddingNumbersMax = 1u << 22;

// What the server says of them.
struct EmbeddingOptions {
  engine::Pooling pooling = engine::Pooling::kMean;  // of requests that say none; not kNone
  uint32_t dimensions = 0;                           // numbers of an embedding; 0: not known here
};

enum class EmbeddingEncoding : uint8_t { kFloat, kBase64 };

// A value type. `prompts` are the inputs, `pooling` is set, `tokens_max` is 0.
struct EmbeddingRequest : GenerationRequest {
  EmbeddingEncoding encoding = EmbeddingEncoding::kFloat;
};

// kInvalidArgument with the field's path; reason "request_too_large" for a body above the limit.
base::Result<EmbeddingRequest> ParseEmbeddingRequest(std::string_view body,
                                                     const RequestLimits& limits,
                                                     const EmbeddingOptions& options);

// Every field that is read here.
std::vector<std::string_view> EmbeddingFieldNames();

}  // namespace plumb::api
