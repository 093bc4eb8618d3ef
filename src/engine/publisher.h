// engine/publisher.h
// Turns what was sampled into the events a sink sees: decides whether a token ends the answer, and
// why, and what text it releases. Text follows every kind of end, so that the whole of it is the
// detokenised answer up to its stop string.
#pragma once

#include "engine/request.h"
#include "engine/sampler.h"
#include "engine/sequence.h"
#include "text/tokenizer.h"

namespace plumb::engine {

// Immutable. Thread: any; a Sample: engine.
class Publisher {
 public:
  explicit Publisher(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // The event of the sample's newest token, which is in sample.tokens already; with `finish` when
  // it is the last: an end token, stop token or stop string (kStop), or tokens_max tokens
  // (kLength).
  TokenEvent Next(Sample& sample, const SampleResult& result) const;

  // The last event of a sample that is ended from outside.
  TokenEvent Last(Sample& sample, FinishReason reason, base::Status status) const;

 private:
  bool EndsAnswer(const SamplingParams& params, TokenId token) const;
  // Releases what text is held back and says why the sample ended.
  static void Close(Sample& sample, TokenEvent& event, FinishReason reason, base::Status status);

  const text::Tokenizer& tokenizer_;
};

}  // namespace plumb::engine
