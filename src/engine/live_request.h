// engine/live_request.h
// A request on its way and its answers. Three parties write here, each to members of its own: the
// engine's thread, whoever holds the gate (engine/host_work.h: text and events), and the callers of
// Cancel.
// Lifetime: the engine frees it once its samples are out of the scheduler, their last events went
// through the gate (`published`; no call of the sink after it), and no hand-over names it any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/answer_text.h"
#include "engine/generator.h"
#include "engine/pooling.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "engine/speculation.h"
#include "engine/token_counts.h"
#include "text/grammar.h"

namespace plumb::engine {

struct LiveRequest;

// One answer. Not movable: sequence.sample points here.
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

  // Thread: engine; while a step is sampled, whichever thread samples this one.
  Sequence sequence;
  bool started = false;          // it has run; tokens and counts are filled
  uint32_t weights_version = 0;  // of the weights that it has run on; 0: none
  std::vector<TokenId> tokens;   // [sequence.length_max] once started; known up to sequence.length
  TokenCounts counts;            // for penalties; unused without them
  std::vector<TokenId> forced;   // sure to follow, by the grammar; capacity kDraftsMax
  std::unique_ptr<SpeculationState> speculation;  // null: nothing is guessed
  std::unique_ptr<DraftState> unweighed;          // of EngineOptions.unweighed_drafter

  std::unique_ptr<Pooler> pooler;  // null: no embedding is asked for, or it has not started

  // Null without a grammar, and before the first mask. The host's from the posting of mask work
  // until it is awaited, otherwise the engine's as above.
  std::unique_ptr<text::GrammarState> grammar;

  // Behind the gate.
  AnswerText text;
  uint32_t tokens_published = 0;
  uint32_t cached_published = 0;  // prompt tokens that were reused, as of the latest hand-over
  bool ended = false;             // its last event went out; nothing follows
  base::Instant last_token{};     // when the latest token was published

  // Set by whoever ends it from behind the gate (a stop string, the watchdog), for the engine to
  // take it out at its next turn.
  std::atomic<bool> ended_by_host{false};
};

struct LiveRequest {
  LiveRequest(Request taken, EventSink& events) : request(std::move(taken)), sink(events) {}

  const Request request;
  EventSink& sink;
  std::vector<std::unique_ptr<Sample>> samples;  // [request.samples], never changed
  base::Instant arrival{};

  // Thread: engine.
  uint32_t unfinished = 0;     // samples that it has not ended
  uint32_t names_version = 0;  // of the weights that the prompt's page names are for
  uint64_t free_after = 0;     // hand-overs that may name it; counted by HostThread

  uint32_t unpublished = 0;  // behind the gate: samples without their last event

  // Thread: any.
  std::atomic<bool> cancelled{false};
  std::atomic<bool> published{false};  // every last event was delivered and its sink has returned

  uint32_t prompt_tokens() const { return static_cast<uint32_t>(request.prompt.size()); }
};

}  // namespace plumb::engine
