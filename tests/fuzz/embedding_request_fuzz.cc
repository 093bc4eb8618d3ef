// tests/fuzz/embedding_request_fuzz.cc
// Arbitrary bytes as the body of POST /v1/embeddings. Besides not crashing: what is taken is within
// the engine's ranges, and what is refused says so in words that JSON can hold.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/embedding_request.h"
#include "base/check.h"
#include "refusal.h"

namespace {

using plumb::api::EmbeddingRequest;
using plumb::api::RequestLimits;

constexpr RequestLimits kLimits{.vocabulary_size = 1000};
constexpr plumb::api::EmbeddingOptions kOptions{.dimensions = 64};

void CheckTaken(const EmbeddingRequest& request) {
  CHECK(!request.model.empty() && !request.prompts.empty());
  CHECK(request.prompts.size() <= plumb::api::kEmbeddingInputsMax) << request.prompts.size();
  for (const auto& prompt : request.prompts) {
    CHECK(prompt.text.empty() != prompt.tokens.empty());
    for (const auto token : prompt.tokens) CHECK(plumb::base::Index(token) < 1000);
  }
  CHECK(request.pooling != plumb::engine::Pooling::kNone);
  CHECK(request.tokens_max == 0u && request.samples == 1 && !request.stream);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto request = plumb::api::ParseEmbeddingRequest(body, kLimits, kOptions);
  if (request.ok()) {
    CheckTaken(*request);
  } else {
    plumb::fuzz::CheckRefusal(request.status());
  }
  return 0;
}
