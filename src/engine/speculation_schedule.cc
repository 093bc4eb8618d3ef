// engine/speculation_schedule.cc
// Sort all guesses by the probability that they count, then try every number of them.
#include "engine/speculation_schedule.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::engine {
namespace {

constexpr double kLikely = 0.5;

}  // namespace

SpeculationSchedule::SpeculationSchedule(uint32_t sequences_max) {
  candidates_.reserve(size_t{sequences_max} * kDraftsMax);
}

ScheduleChoice SpeculationSchedule::Choose(std::span<Draft* const> drafts,
                                           const ScheduleInput& input, const StepNs& step_ns) {
  Collect(drafts);
  const uint32_t rows_max = std::min(input.drafts_max, static_cast<uint32_t>(candidates_.size()));
  const double plain_ns = step_ns(0);
  ScheduleChoice best{.drafts = 0, .tokens = input.tokens, .step_ns = plain_ns};
  double best_rate = input.tokens / (plain_ns + input.spent_ns) * input.gain_min;
  double tokens = input.tokens;
  for (uint32_t rows = 1; rows <= rows_max; ++rows) {
    const double probability = candidates_[rows - 1].probability;
    tokens += probability;
    if (plain_ns <= 0) {
      if (probability >= kLikely) best = {.drafts = rows, .tokens = tokens, .step_ns = 0};
      continue;
    }
    const double ns = step_ns(rows);
    const double rate = tokens / (ns + input.spent_ns);
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = {.drafts = rows, .tokens = tokens, .step_ns = ns};
  }
  for (Draft* draft : drafts) draft->count = 0;
  for (uint32_t i = 0; i < best.drafts; ++i) {
    Draft& draft = *drafts[candidates_[i].draft];
    CHECK(candidates_[i].place == draft.count) << "a guess without the one before it";
    ++draft.count;
  }
  return best;
}

void SpeculationSchedule::Collect(std::span<Draft* const> drafts) {
  candidates_.clear();
  for (uint32_t index = 0; index < drafts.size(); ++index) {
    double probability = 1;
    for (uint32_t place = 0; place < drafts[index]->count; ++place) {
      const float confidence = drafts[index]->confidence[place];
      CHECK(confidence >= 0 && confidence <= 1) << confidence;
      probability *= confidence;
      CHECK(candidates_.size() < candidates_.capacity()) << "more than sequences_max drafts";
      candidates_.push_back({probability, index, place});
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    if (a.probability != b.probability) return a.probability > b.probability;
    return a.draft != b.draft ? a.draft < b.draft : a.place < b.place;
  });
}

}  // namespace plumb::engine
