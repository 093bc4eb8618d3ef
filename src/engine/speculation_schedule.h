// engine/speculation_schedule.h
// Which of the guesses are worth a row of the coming step: those that make the most expected tokens
// per time, given how likely each is and how the step's time grows with its rows. Pure: no clock,
// no state but scratch. The idea is the confidence-scheduled verification of DeepSeek's DSpark, for
// any drafter. Read next: engine/speculation.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/drafter.h"

namespace plumb::engine {

// The predicted time of the coming step with so many rows of guesses; <= 0: not known yet.
using StepNs = std::function<double(uint32_t draft_rows)>;

struct ScheduleInput {
  double tokens = 0;        // what the step is worth without guesses, in tokens
  double spent_ns = 0;      // on guessing, whatever is chosen
  double gain_min = 1;      // tokens per time, over those of no guesses: less is not worth it
  uint32_t drafts_max = 0;  // rows left for guesses
};

struct ScheduleChoice {
  uint32_t drafts = 0;  // chosen, over all sequences
  double tokens = 0;    // expected of the step
  double step_ns = 0;   // predicted
};

class SpeculationSchedule {
 public:
  explicit SpeculationSchedule(uint32_t sequences_max);

  // Lowers each draft's count to what is chosen of it. The first k guesses of a sequence are all
  // right with the product of their confidences, which only falls with k: so for any number of rows
  // the likeliest guesses are the best ones and hold no guess without those before it, and trying
  // every number finds the best choice there is. O(n log n) and n calls of `step_ns`. Of equal
  // choices the one with fewer rows; of equal guesses those of earlier drafts.
  // While the time is not known, guesses that are rather right than wrong are taken.
  ScheduleChoice Choose(std::span<Draft* const> drafts, const ScheduleInput& input,
                        const StepNs& step_ns);

 private:
  struct Candidate {
    double probability;  // that it and all before it are right
    uint32_t draft;
    uint32_t place;
  };
  void Collect(std::span<Draft* const> drafts);

  std::vector<Candidate> candidates_;  // capacity sequences_max * kDraftsMax
};

}  // namespace plumb::engine
