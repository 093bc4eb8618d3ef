// engine/request_check.h
// Whether a Request keeps to what engine/request.h says of it. Whoever built it has checked
// already; the engine checks again, because a range missed anywhere above must not reach a kernel.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "engine/request.h"

namespace plumb::engine {

struct RequestLimits {
  uint32_t vocabulary_size;
  uint32_t context_max;       // tokens, prompt and answer together
  uint32_t hidden_width = 0;  // 0: the model gives no hidden states
  bool has_draft_model = false;
};

// kInvalidArgument, field() = the member at fault, "sampling.top_p" say; reason
// "context_length_exceeded" when prompt + tokens_max is more than context_max. kUnsupported: an
// embedding of a model that gives no hidden states.
base::Status CheckRequest(const Request& request, const RequestLimits& limits);

}  // namespace plumb::engine
