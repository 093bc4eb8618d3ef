// engine/step_limit.h
// How long the coming step may take, as a function of what it costs to decode alone. Prompt rows
// and drafts are planned as long as the step is predicted to stay within. docs/scheduling.md.
#pragma once

#include "base/clock.h"
#include "engine/step_cost.h"

namespace plumb::engine {

struct StepTargets {
  // Of a step in which nobody waits for a next token: the bound on how late an arrival, a
  // cancellation or a deadline is seen. 0 = no such limit.
  base::Duration step{0};
  // Between two tokens of a running answer. 0 = automatic: `stretch` times what a step without
  // prompts costs (stretch.h), at least kItlFloor.
  base::Duration itl{0};
  double stretch = 1.5;
};

// Nobody notices less.
constexpr base::Duration kItlFloor = base::Milliseconds(10);

// No limit.
constexpr base::Duration kEndless{INT64_MAX};

// Of a step that holds prompt rows beside the decode rows `decode`. `awaited`: somebody waits for
// the tokens of some of these (none are there, or all are of batch requests: nobody does).
base::Duration StepLimit(const StepCost& cost, const StepTargets& targets, const StepShape& decode,
                         bool awaited);

// For drafts beside the same decode rows, within the StepLimit `limit`: where prompts wait they
// have half of the room; alone they may use what a step without streams may, and up to 300 ms four
// times what decoding takes, unless there is an itl target.
base::Duration DraftLimit(const StepCost& cost, const StepTargets& targets, const StepShape& decode,
                          base::Duration limit, bool prompts);

}  // namespace plumb::engine
