// engine/generator.h
// The waist of plumb: everything above (API, CLI) sees a Generator, and the local engine, the
// cluster router and upstream engines implement it. One contract: every accepted request ends
// exactly once.
#pragma once

#include "base/status.h"
#include "engine/request.h"

namespace plumb::engine {

// Receives the events of a request. Called on the generator's threads, by one at a time: must not
// block, throw, or call back into the generator (Cancel excepted).
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void OnEvent(TokenEvent event) = 0;
};

// Thread: any, for every method.
class Generator {
 public:
  virtual ~Generator() = default;

  // Takes the request. On ok, `sink` gets the events of every sample, in order within a sample, the
  // last with `finish`; it must live until then. On error, the sink is never called.
  // kInvalidArgument (field; reason context_length_exceeded when prompt + tokens_max do not fit);
  // kOverloaded with retry_after_ms: queue full; kUnavailable with retry_after_ms: stopping.
  virtual base::Status Submit(Request request, EventSink& sink) = 0;

  // Ends the request's unfinished samples with kCancelled, within one step; an unknown id (already
  // finished) is no error.
  virtual void Cancel(RequestId id) = 0;
};

}  // namespace plumb::engine
