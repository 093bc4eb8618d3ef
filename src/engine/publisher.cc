// engine/publisher.cc
// Tokens to events. An ending token has no text; what was held back before it is released.
#include "engine/publisher.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::engine {
namespace {

uint32_t GeneratedTokens(const Sample& sample) {
  if (!sample.started) return 0;
  return static_cast<uint32_t>(sample.tokens.size()) - sample.request.prompt_tokens();
}

TokenEvent NewEvent(const Sample& sample) {
  return {.request = sample.request.request.id, .sample_index = sample.index};
}

Finish NewFinish(const Sample& sample, FinishReason reason) {
  return {.reason = reason,
          .prompt_tokens = sample.request.prompt_tokens(),
          .completion_tokens = GeneratedTokens(sample),
          .cached_tokens = sample.sequence.cached};
}

TokenLogprob ToLogprob(const SampleResult& result) {
  return {.token = result.token,
          .logprob = result.logprob,
          .top = {result.top.begin(), result.top.begin() + result.top_count}};
}

}  // namespace

TokenEvent Publisher::Next(Sample& sample, const SampleResult& result) const {
  const SamplingParams& params = sample.request.request.sampling;
  CHECK(!sample.tokens.empty() && sample.tokens.back() == result.token);
  TokenEvent event = NewEvent(sample);
  event.tokens.push_back(result.token);
  if (params.logprobs) event.logprobs.push_back(ToLogprob(result));
  if (EndsAnswer(params, result.token)) {
    Close(sample, event, FinishReason::kStop, base::OkStatus());
    return event;
  }
  AnswerText::Piece piece = sample.text.Push(result.token);
  event.text = std::move(piece.text);
  if (piece.stop_index) {
    event.finish = NewFinish(sample, FinishReason::kStop);
    event.finish->stop = params.stop[*piece.stop_index];
  } else if (GeneratedTokens(sample) >= params.tokens_max) {
    Close(sample, event, FinishReason::kLength, base::OkStatus());
  }
  return event;
}

TokenEvent Publisher::Last(Sample& sample, FinishReason reason, base::Status status) const {
  TokenEvent event = NewEvent(sample);
  Close(sample, event, reason, std::move(status));
  return event;
}

bool Publisher::EndsAnswer(const SamplingParams& params, TokenId token) const {
  const auto ends = tokenizer_.end_tokens();
  if (!params.ignore_end && std::binary_search(ends.begin(), ends.end(), token)) return true;
  return std::find(params.stop_tokens.begin(), params.stop_tokens.end(), token) !=
         params.stop_tokens.end();
}

void Publisher::Close(Sample& sample, TokenEvent& event, FinishReason reason, base::Status status) {
  AnswerText::Piece piece = sample.text.Finish();
  event.text += piece.text;
  event.finish = NewFinish(sample, reason);
  event.finish->status = std::move(status);
  // An unfinished character may complete a stop string; that then is why a good answer ended.
  const bool good = reason == FinishReason::kStop || reason == FinishReason::kLength;
  if (piece.stop_index && good) {
    event.finish->reason = FinishReason::kStop;
    event.finish->stop = sample.request.request.sampling.stop[*piece.stop_index];
  }
}

}  // namespace plumb::engine
