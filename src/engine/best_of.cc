// engine/best_of.cc
// Collects, orders, sends on.
#include "engine/best_of.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace plumb::engine {
namespace {

template <typename T>
void MoveAppend(std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

bool IsGood(const TokenEvent& event) {
  return event.finish->reason == FinishReason::kStop ||
         event.finish->reason == FinishReason::kLength;
}

}  // namespace

BestOf::BestOf(Counts counts, bool logprobs, EventSink& sink)
    : counts_(counts), logprobs_(logprobs), sink_(sink), answers_(counts.samples) {
  CHECK(counts.keep >= 1 && counts.keep <= counts.samples && counts.samples <= kSamplesMax)
      << counts.keep << " of " << counts.samples;
  for (uint32_t i = 0; i < counts.samples; ++i) answers_[i].sample_index = i;
}

Request BestOf::Widen(Request request, uint32_t samples) {
  request.samples = samples;
  request.sampling.logprobs = true;
  return request;
}

void BestOf::OnEvent(TokenEvent event) {
  CHECK(event.sample_index < answers_.size()) << event.sample_index;
  Answer& answer = answers_[event.sample_index];
  CHECK(!answer.event.finish) << "an event after the last";
  for (const TokenLogprob& logprob : event.logprobs) answer.logprob_sum += logprob.logprob;
  answer.event.request = event.request;
  MoveAppend(event.tokens, answer.event.tokens);
  answer.event.text += event.text;
  if (logprobs_) MoveAppend(event.logprobs, answer.event.logprobs);
  MoveAppend(event.prompt_logprobs, prompt_logprobs_);
  if (!event.finish) return;
  completion_tokens_ += event.finish->completion_tokens;
  answer.event.finish = std::move(event.finish);
  if (++ended_ < counts_.samples) return;

  std::sort(answers_.begin(), answers_.end(), Better);
  for (uint32_t rank = 0; rank < counts_.keep; ++rank) {
    TokenEvent& kept = answers_[rank].event;
    kept.sample_index = rank;
    if (rank == 0) kept.prompt_logprobs = std::move(prompt_logprobs_);
    // The last call may end the sink's life, and with it this one's.
    const bool last = rank + 1 == counts_.keep;
    EventSink& sink = sink_;
    sink.OnEvent(std::move(kept));
    if (last) return;
  }
}

bool BestOf::Better(const Answer& a, const Answer& b) {
  if (IsGood(a.event) != IsGood(b.event)) return IsGood(a.event);
  const auto mean = [](const Answer& answer) {
    const size_t tokens = answer.event.tokens.size();
    return tokens > 0 ? answer.logprob_sum / static_cast<double>(tokens) : 0.0;
  };
  if (mean(a) != mean(b)) return mean(a) > mean(b);
  return a.sample_index < b.sample_index;
}

}  // namespace plumb::engine
