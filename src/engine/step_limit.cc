// engine/step_limit.cc
// The numbers behind the table in docs/scheduling.md, and what each is for.
#include "engine/step_limit.h"

#include <algorithm>

namespace plumb::engine {
namespace {

// Where nobody waits for a token, so many times as long as a single row: reading the weights of a
// large model alone may take longer than any target, and must be worth its while.
constexpr double kStretchUnawaited = 3;
// A step that gives several tokens of an answer at once may take so many times as long as one that
// gives one, but not so long that arrivals and cancellations wait for it noticeably.
constexpr double kStretchDrafts = 4;
constexpr base::Duration kDraftsLongest = base::Milliseconds(300);
// Where decoding alone takes all the time there is, prompts still have so much of it, or nobody new
// would ever be served.
constexpr double kPromptsLeast = 1.0 / 8;

base::Duration Times(base::Duration duration, double factor) {
  return {static_cast<int64_t>(static_cast<double>(duration.ns) * factor)};
}

}  // namespace

base::Duration StepLimit(const StepCost& cost, const StepTargets& targets, const StepShape& decode,
                         bool awaited) {
  const base::Duration alone = cost.Predict(decode);
  const base::Duration least = Times(alone, 1 + kPromptsLeast);
  if (awaited && targets.itl.ns > 0) return std::max(targets.itl, least);
  if (targets.step.ns <= 0) return kEndless;
  if (awaited) return std::max(kItlFloor, Times(alone, targets.stretch));
  const StepShape row{.rows = 1, .logits_rows = 0, .keys = 0};
  return std::max({targets.step, least, Times(cost.Predict(row), kStretchUnawaited)});
}

base::Duration DraftLimit(const StepCost& cost, const StepTargets& targets, const StepShape& decode,
                          base::Duration limit, bool prompts) {
  if (limit == kEndless) return limit;
  const base::Duration alone = cost.Predict(decode);
  if (!prompts && targets.itl.ns > 0) return limit;
  if (!prompts) {
    return std::max({limit, targets.step, std::min(Times(alone, kStretchDrafts), kDraftsLongest)});
  }
  return {alone.ns + (limit.ns - alone.ns) / 2};
}

}  // namespace plumb::engine
