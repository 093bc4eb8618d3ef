// engine/publisher.cc
// Tokens to events. An ending token has no text; what was held back before it is released.
#include "engine/publisher.h"

#include "base/check.h"

namespace plumb::engine {
namespace {

TokenLogprob ToLogprob(const SampleResult& result) {
  return {.token = result.token,
          .logprob = result.logprob,
          .top = {result.top.begin(), result.top.begin() + result.top_count}};
}

Finish NewFinish(const HandedSample& handed, FinishReason reason) {
  const Sample& sample = *handed.sample;
  return {.reason = reason,
          .prompt_tokens = sample.request.prompt_tokens(),
          .completion_tokens = sample.tokens_published,
          .cached_tokens = handed.cached_tokens,
          .stored_tokens = handed.stored_tokens,
          .weights_version = handed.weights_version};
}

// Releases what text is held back and says why the sample ended.
void Close(const HandedSample& handed, TokenEvent& event) {
  Sample& sample = *handed.sample;
  AnswerText::Piece piece = sample.text.Finish();
  event.text += piece.text;
  event.finish = NewFinish(handed, *handed.end);
  event.finish->status = handed.status;
  // An unfinished character may complete a stop string; that then is why a good answer ended.
  const bool good = handed.end == FinishReason::kStop || handed.end == FinishReason::kLength;
  if (piece.stop_index && good) {
    event.finish->reason = FinishReason::kStop;
    event.finish->stop = sample.request.request.sampling.stop[*piece.stop_index];
  }
}

}  // namespace

TokenEvent MakeEvent(const HandedSample& handed, std::span<const SampleResult> results) {
  Sample& sample = *handed.sample;
  const SamplingParams& params = sample.request.request.sampling;
  CHECK(results.size() == handed.prompt_results + handed.tokens) << results.size();
  TokenEvent event{.request = sample.request.request.id,
                   .sample_index = sample.index,
                   .weights_version = handed.weights_version};
  for (const SampleResult& result : results.first(handed.prompt_results)) {
    event.prompt_logprobs.push_back(ToLogprob(result));
  }
  for (uint32_t i = 0; i < handed.tokens; ++i) {
    const SampleResult& result = results[handed.prompt_results + i];
    event.tokens.push_back(result.token);
    if (params.logprobs) event.logprobs.push_back(ToLogprob(result));
    ++sample.tokens_published;
    if (handed.end_token && i + 1 == handed.tokens) break;
    AnswerText::Piece piece = sample.text.Push(result.token);
    event.text += piece.text;
    if (!piece.stop_index) continue;
    event.finish = NewFinish(handed, FinishReason::kStop);
    event.finish->stop = params.stop[*piece.stop_index];
    return event;
  }
  if (handed.end) Close(handed, event);
  const bool pooled = sample.request.request.pooling != Pooling::kNone;
  if (pooled && handed.end == FinishReason::kStop) {
    event.embedding = sample.pooler->Take();
  }
  return event;
}

}  // namespace plumb::engine
