// engine/speculation.h
// What the engine sees of speculation: asked once a step, it says which guessed tokens to compute
// for each decoding sequence, and never more than pay. It asks the drafters (drafter.h), keeps
// score of how often they are right, and weighs that against the time of a step with more rows
// (speculation_schedule.h). Answers do not depend on anything here. docs/speculation.md has why.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/draft_rate.h"
#include "engine/drafter.h"
#include "engine/model_drafter.h"
#include "engine/ngram_drafter.h"
#include "engine/speculation_schedule.h"

namespace plumb::engine {

struct SpeculationOptions {
  // For requests that leave it to the server; not kServer (CHECK). kAuto takes n-grams where the
  // text repeats itself, else the draft model if there is one.
  Speculation mode = Speculation::kAuto;
  uint32_t sequences_max = 0;        // that decode in a step
  uint32_t drafts_max = kDraftsMax;  // of a sequence in a step; [1, kDraftsMax]
};

// What one drafter guessed for a sequence, and how good its guesses have been.
struct DraftSource {
  std::unique_ptr<DraftState> state;  // null: never asked
  Draft draft;
  uint32_t length = 0;   // of the sequence when it guessed
  uint32_t forced = 0;   // guesses of `draft` that are not its own: the first so many
  uint32_t guessed = 0;  // guesses of `draft`, before some were chosen
  DraftRate rate;        // of its own guesses, one after the other
};

// One sequence's share. Owner: whoever called Begin; may be dropped and begun anew between steps.
// Thread: engine.
class SpeculationState {
 public:
  SpeculationState();
  SpeculationState(const SpeculationState&) = delete;
  SpeculationState& operator=(const SpeculationState&) = delete;

  // What to compute in the coming step after the last known token: set by Speculator::Choose, valid
  // until the next one.
  std::span<const TokenId> guesses() const {
    return std::span(chosen_->draft.guesses).first(count_);
  }

 private:
  friend class Speculator;
  DraftSource ngram_;
  DraftSource model_;
  DraftSource* chosen_ = &ngram_;
  uint32_t count_ = 0;  // chosen of its guesses
  uint32_t length_max_ = 0;
};

// A sequence that decodes in the coming step.
struct SpeculationItem {
  SpeculationState* state = nullptr;
  std::span<const TokenId> tokens;  // all that is known, prompt first
  TokenCounts* counts = nullptr;    // null without penalties; unchanged on return
  uint32_t max = 0;                 // guesses at most: tokens it may still have, less one
  std::span<const TokenId> forced;  // sure to follow (a grammar allows nothing else)
};

// What the coming step holds besides guesses.
struct StepLoad {
  uint32_t decode_rows = 0;  // sequences that decode, those without speculation too
  uint32_t prompt_rows = 0;  // prompt rows that are expected to share the step
  uint32_t drafts_max = 0;   // rows that are left for guesses
};

// Thread: engine.
class Speculator {
 public:
  // `model` may be null: there is no draft model.
  Speculator(const SpeculationOptions& options, std::unique_ptr<ModelDrafter> model,
             const base::Clock& clock);

  // Null when this request is not to be speculated for. Allocates; the calls below do not.
  std::unique_ptr<SpeculationState> Begin(Speculation wanted, const SamplingParams& sampling,
                                          uint32_t sample_index, uint32_t length_max);

  // Sets state->guesses() of each item (at most sequences_max, of different sequences). Call it in
  // every step that decodes, also when there is room for no guess: the drafters learn from what
  // came. `step_ns` is called often, and must be cheap; it allocates nothing if it captures no more
  // than two pointers.
  void Choose(std::span<const SpeculationItem> items, const StepLoad& load, const StepNs& step_ns);

  // A step took `elapsed` (without Choose) where `predicted` was to be expected of the rows that it
  // had, of which `draft_rows` were guesses. Where steps with guesses turn out slower than
  // predicted, as compared with steps without, guesses are taken to cost more.
  void Observe(uint32_t draft_rows, base::Duration predicted, base::Duration elapsed);

 private:
  void Prepare(const SpeculationItem& item);
  // What came since, against what was guessed. `shared`: a rate over all sequences, or null.
  static void Score(DraftSource& source, Drafter& drafter, std::span<const TokenId> tokens,
                    DraftRate* shared = nullptr);
  static void Restart(DraftSource& source, const SpeculationItem& item, uint32_t max);
  void AskModel(const ScheduleInput& input, const StepNs& corrected_ns);
  bool WantsModel(const SpeculationState& state) const;
  // How often the draft model's guesses are right in this sequence.
  float ModelRate(const SpeculationState& state) const;
  // How many guesses of the draft model for each of `asking_` are worth their time, at most.
  uint32_t ModelDepth(const ScheduleInput& input, const StepNs& corrected_ns) const;

  const SpeculationOptions options_;
  const base::Clock& clock_;
  NgramDrafter ngram_;
  const std::unique_ptr<ModelDrafter> model_;
  DraftRate model_rate_;  // of its guesses for all sequences
  SpeculationSchedule schedule_;
  bool speculating_ = false;  // in the last step
  double plain_ratio_ = 1;    // running mean of elapsed / predicted, of steps without guesses
  double draft_ratio_ = 1;    // the same of steps with guesses
  std::vector<SpeculationState*> states_;  // of the step; capacity sequences_max
  std::vector<SpeculationState*> asking_;  // those of them that ask the draft model
  std::vector<Draft*> batch_;              // capacity sequences_max
};

}  // namespace plumb::engine
