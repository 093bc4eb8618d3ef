// tests/fuzz/completion_request_fuzz.cc
// Arbitrary bytes as the body of POST /v1/completions. Besides not crashing: what is taken is
// within the engine's ranges, and what is refused says so in words that JSON can hold.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/completion_request.h"
#include "base/check.h"
#include "refusal.h"

namespace {

using plumb::api::CompletionRequest;
using plumb::api::RequestLimits;

constexpr RequestLimits kLimits{.vocabulary_size = 1000};

void CheckTaken(const CompletionRequest& request) {
  CHECK(!request.model.empty() && !request.prompts.empty());
  CHECK(request.prompts.size() <= plumb::api::kCompletionPromptsMax) << request.prompts.size();
  for (const auto& prompt : request.prompts) {
    CHECK(prompt.text.empty() || prompt.tokens.empty());
    for (const auto token : prompt.tokens) CHECK(plumb::base::Index(token) < 1000);
  }
  CHECK(request.choices >= 1 && request.choices <= request.samples);
  CHECK(request.samples <= plumb::engine::kSamplesMax);
  CHECK(request.samples == request.choices || (request.sampling.logprobs && !request.stream));
  CHECK(*request.tokens_max >= 1 && *request.tokens_max <= INT32_MAX);
  CHECK(request.sampling.top_logprobs <= plumb::api::kCompletionLogprobsMax);
  CHECK(!request.logprobs || request.sampling.logprobs);
  CHECK(request.prompt_logprobs == (request.echo && request.logprobs));
  CHECK(request.suffix.empty() || !request.echo);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto request = plumb::api::ParseCompletionRequest(body, kLimits);
  if (request.ok()) {
    CheckTaken(*request);
  } else {
    plumb::fuzz::CheckRefusal(request.status());
  }
  return 0;
}
