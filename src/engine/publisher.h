// engine/publisher.h
// Turns what a step gave a sample into the event that its sink sees: what text the tokens release,
// and whether a stop string ends the answer. Text follows every kind of end, so that the whole of
// it is the detokenised answer up to its stop string.
#pragma once

#include <span>

#include "engine/hand_over.h"
#include "engine/live_request.h"
#include "engine/request.h"
#include "engine/sampler.h"

namespace plumb::engine {

// The event of `handed`, whose results are `results`; with `finish` when it is the sample's last:
// because the engine ended it there, or because a stop string was met, and then nothing after it is
// in the event. Thread: whoever holds the gate.
TokenEvent MakeEvent(const HandedSample& handed, std::span<const SampleResult> results);

}  // namespace plumb::engine
