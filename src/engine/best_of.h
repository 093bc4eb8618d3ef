// engine/best_of.h
// More answers than are wanted, of which the likeliest go on: a sink between the engine and the
// caller's sink that collects all samples of a request, and when the last has ended sends the best
// on. Best: the highest mean log-probability of its tokens (log-probability per token, so that
// short answers have no advantage), then the lower sample index; an answer that was cancelled or
// failed is after all others.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/generator.h"
#include "engine/request.h"

namespace plumb::engine {

// Lives as long as the sink of its request must, and like it is called from one thread at a time.
class BestOf final : public EventSink {
 public:
  // Of the request's `samples` answers the best `keep` go to `sink`, as samples 0, 1, ..., best
  // first, each in one event. `sink` must outlive this. 1 <= keep <= samples (CHECK).
  // `logprobs`: whether the caller asked for them; they are computed anyway.
  struct Counts {
    uint32_t samples;
    uint32_t keep;
  };
  BestOf(Counts counts, bool logprobs, EventSink& sink);

  // What to submit with a BestOf as its sink: `request` with so many samples and log-probabilities.
  static Request Widen(Request request, uint32_t samples);

  void OnEvent(TokenEvent event) override;

  // Of all samples, once the sink had its last event: what was generated, not only what was kept.
  uint64_t completion_tokens() const { return completion_tokens_; }

 private:
  struct Answer {
    TokenEvent event;  // everything that came of it
    double logprob_sum = 0;
    uint32_t sample_index = 0;
  };
  static bool Better(const Answer& a, const Answer& b);

  const Counts counts_;
  const bool logprobs_;
  EventSink& sink_;
  std::vector<Answer> answers_;  // [samples]
  std::vector<TokenLogprob> prompt_logprobs_;
  uint32_t ended_ = 0;
  uint64_t completion_tokens_ = 0;
};

}  // namespace plumb::engine
