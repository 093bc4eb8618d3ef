// engine/sequence.h
// One sample of a request on its way: what the scheduler counts (Sequence), and what the engine
// keeps beside it (Sample, LiveRequest). The scheduler sees numbers and pages, and
// tokens only for reuse. Read next: engine/scheduler.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "engine/answer_text.h"
#include "engine/generator.h"
#include "engine/request.h"
#include "engine/token_counts.h"
#include "kvcache/page_pool.h"

namespace plumb::engine {

struct Sample;

enum class SequenceState : uint8_t { kNew, kWaiting, kRunning, kEnded };

// Thread: engine. Owner: the request; the scheduler borrows it from Add to Remove and alone writes
// to state, computed and what follows it, up to `chain`.
struct Sequence {
  uint64_t order = 0;       // by arrival, then sample; unique; lower = older
  uint32_t length = 0;      // tokens known: the prompt, and what was sampled so far
  uint32_t length_max = 0;  // prompt + tokens_max: the most it will ever have
  SequenceState state = SequenceState::kNew;
  uint32_t computed = 0;               // tokens whose keys and values are in the pages; < length
  uint32_t sealed = 0;                 // pages that the prefix tree holds too: the first so many
  uint32_t cached = 0;                 // prompt tokens that were reused instead of computed
  bool preempted = false;              // at least once
  std::vector<kvcache::PageId> pages;  // in token order
  std::vector<std::byte*> page_data;   // the same pages' memory, for the model
  // For reuse, else unset. chain[i]: the name of page i - 1; chain[0]: the root (page_chain.h). Set
  // up to the prompt's last whole page, then continued as pages fill.
  std::vector<base::Hash256> chain;
  const TokenId* tokens = nullptr;  // [length]
  Sample* sample = nullptr;         // for the engine; the scheduler never looks inside

  // Tokens to compute before the next one can be sampled; >= 1.
  uint32_t remaining() const { return length - computed; }
  // A single row that follows computed ones, as opposed to a part of a prompt.
  bool decoding() const { return computed > 0 && remaining() == 1; }
};

struct LiveRequest;

// Thread: engine. Not movable: sequence.sample points here.
struct Sample {
  Sample(LiveRequest& owner, uint32_t sample_index, const text::Tokenizer& tokenizer,
         const std::vector<std::string>& stops)
      : request(owner), index(sample_index), text(tokenizer, stops) {
    sequence.sample = this;
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  LiveRequest& request;
  const uint32_t index;
  Sequence sequence;
  bool started = false;         // it has run; tokens and counts are filled
  std::vector<TokenId> tokens;  // [sequence.length] once started, never reallocated
  TokenCounts counts;           // for penalties; unused without them
  AnswerText text;
  base::Instant last_token{};  // when the latest token was published
};

// Owner: the engine. Thread: engine, but `cancelled`: any.
struct LiveRequest {
  LiveRequest(Request taken, EventSink& events) : request(std::move(taken)), sink(events) {}

  const Request request;
  EventSink& sink;
  std::vector<std::unique_ptr<Sample>> samples;
  uint32_t unfinished = 0;  // samples that have not ended
  base::Instant arrival{};
  std::atomic<bool> cancelled{false};

  uint32_t prompt_tokens() const { return static_cast<uint32_t>(request.prompt.size()); }
};

}  // namespace plumb::engine
