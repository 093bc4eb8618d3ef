// engine/request_check.cc
// The ranges of request.h, one after the other; the first fault is told.
#include "engine/request_check.h"

#include <fmt/format.h>

#include <span>

#include "base/result.h"

namespace plumb::engine {
namespace {

struct Range {
  float low, high;
  bool low_open = false;  // `low` itself is outside
};

base::Status CheckNumber(const char* field, float value, Range range) {
  // Written so that a value that is not a number fails.
  const bool above = range.low_open ? value > range.low : value >= range.low;
  if (above && value <= range.high) return base::OkStatus();
  return base::InvalidArgument(field,
                               fmt::format("{} is {}; it must be in {}{}, {}]", field, value,
                                           range.low_open ? '(' : '[', range.low, range.high));
}

base::Status CheckCount(const char* field, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return base::OkStatus();
  return base::InvalidArgument(
      field, fmt::format("{} is {}; it must be in [{}, {}]", field, value, low, high));
}

base::Status CheckToken(const char* field, TokenId token, uint32_t vocabulary_size) {
  if (base::Index(token) < vocabulary_size) return base::OkStatus();
  return base::InvalidArgument(field, fmt::format("{} holds token {}; the vocabulary has {} tokens",
                                                  field, base::Index(token), vocabulary_size));
}

base::Status CheckTokens(const char* field, std::span<const TokenId> tokens,
                         uint32_t vocabulary_size) {
  for (const TokenId token : tokens) RETURN_IF_ERROR(CheckToken(field, token, vocabulary_size));
  return base::OkStatus();
}

base::Status CheckNumbers(const SamplingParams& params) {
  RETURN_IF_ERROR(CheckNumber("sampling.temperature", params.temperature, {0, 2}));
  RETURN_IF_ERROR(CheckNumber("sampling.top_p", params.top_p, {0, 1, true}));
  RETURN_IF_ERROR(CheckNumber("sampling.min_p", params.min_p, {0, 1}));
  RETURN_IF_ERROR(CheckNumber("sampling.presence_penalty", params.presence_penalty, {-2, 2}));
  RETURN_IF_ERROR(CheckNumber("sampling.frequency_penalty", params.frequency_penalty, {-2, 2}));
  return CheckNumber("sampling.repetition_penalty", params.repetition_penalty, {0, 2, true});
}

base::Status CheckLists(const SamplingParams& params, uint32_t vocabulary_size) {
  RETURN_IF_ERROR(CheckCount("sampling.logit_bias", params.logit_bias.size(), 0, kLogitBiasMax));
  for (const LogitBias& bias : params.logit_bias) {
    RETURN_IF_ERROR(CheckToken("sampling.logit_bias", bias.token, vocabulary_size));
    RETURN_IF_ERROR(CheckNumber("sampling.logit_bias", bias.bias, {-100, 100}));
  }
  RETURN_IF_ERROR(CheckCount("sampling.stop", params.stop.size(), 0, kStopStringsMax));
  for (const std::string& stop : params.stop) {
    RETURN_IF_ERROR(CheckCount("sampling.stop", stop.size(), 1, kStopStringBytesMax));
  }
  RETURN_IF_ERROR(CheckCount("sampling.stop_tokens", params.stop_tokens.size(), 0, kStopTokensMax));
  return CheckTokens("sampling.stop_tokens", params.stop_tokens, vocabulary_size);
}

base::Status CheckHints(const Request& request) {
  RETURN_IF_ERROR(CheckCount("hints", request.hints.size(), 0, kHintsMax));
  for (const RetentionHint& hint : request.hints) {
    RETURN_IF_ERROR(CheckCount("hints.tokens", hint.tokens, 0, request.prompt.size()));
    const int64_t ns = hint.time.ns;
    if (ns > 0 && ns <= kHintTimeMax.ns) continue;
    return base::InvalidArgument(
        "hints.time", fmt::format("hints.time is {} s; it must be above 0 and at most {} s",
                                  hint.time.seconds(), kHintTimeMax.seconds()));
  }
  return base::OkStatus();
}

base::Status CheckPooling(const Request& request, const RequestLimits& limits) {
  if (request.pooling == Pooling::kNone) return base::OkStatus();
  if (limits.hidden_width == 0) return base::Unsupported("this model gives no embeddings");
  const bool more = request.samples > 1 || request.grammar != nullptr || request.prompt_logprobs ||
                    request.sampling.logprobs;
  if (!more) return base::OkStatus();
  return base::InvalidArgument("pooling",
                               "an embedding has one sample, no log-probabilities and no grammar");
}

base::Status CheckLength(const Request& request, uint32_t context_max) {
  const uint64_t prompt = request.prompt.size(), answer = request.sampling.tokens_max;
  if (prompt + answer <= context_max) return base::OkStatus();
  return base::InvalidArgument(
             "prompt", fmt::format("the context holds {} tokens at most, but {} were requested ({} "
                                   "in the prompt, {} for the answer); shorten either",
                                   context_max, prompt + answer, prompt, answer))
      .WithReason("context_length_exceeded");
}

}  // namespace

base::Status CheckRequest(const Request& request, const RequestLimits& limits) {
  const SamplingParams& params = request.sampling;
  RETURN_IF_ERROR(CheckCount("samples", request.samples, 1, kSamplesMax));
  RETURN_IF_ERROR(CheckNumbers(params));
  RETURN_IF_ERROR(CheckLists(params, limits.vocabulary_size));
  RETURN_IF_ERROR(CheckCount("sampling.top_logprobs", params.top_logprobs, 0,
                             params.logprobs || request.prompt_logprobs ? kTopLogprobsMax : 0));
  if (request.grammar != nullptr && params.ignore_end) {
    return base::InvalidArgument(
        "sampling.ignore_end",
        "sampling.ignore_end is set beside a grammar, whose answers end with an end token");
  }
  if (request.speculation == Speculation::kDraft && !limits.has_draft_model) {
    return base::InvalidArgument(
        "speculation",
        "speculation is \"draft\", and there is no draft model here: leave it out, ask for "
        "\"ngram\", or start the server with --speculation draft:MODEL");
  }
  RETURN_IF_ERROR(CheckHints(request));
  RETURN_IF_ERROR(CheckPooling(request, limits));
  const bool generates = request.pooling == Pooling::kNone;
  RETURN_IF_ERROR(CheckCount("sampling.tokens_max", params.tokens_max, generates ? 1 : 0,
                             generates ? UINT32_MAX : 0));
  RETURN_IF_ERROR(CheckCount("prompt", request.prompt.size(), 1, UINT64_MAX));
  RETURN_IF_ERROR(CheckLength(request, limits.context_max));
  return CheckTokens("prompt", request.prompt, limits.vocabulary_size);
}

}  // namespace plumb::engine
