// engine/speculation.cc
// A step: keep score of what was guessed before, ask the n-grams of every sequence, ask the draft
// model where it is likelier right and its time pays, then choose among all guesses.
#include "engine/speculation.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plumb::engine {
namespace {

// A step with guesses must promise so much more per time than one without, to begin with and to go
// on: predictions are noisy, and a wrong one should not cost.
constexpr double kGainToBegin = 1.05;
constexpr double kGainToGoOn = 1.01;

// A prompt row counts as so many tokens: guesses must not crowd prompts out for next to nothing.
constexpr double kPromptRowTokens = 0.25;

// Guesses of the draft model while it is not known how long they take.
constexpr uint32_t kDepthUnmeasured = 4;
// Tokens of a draft model's prompt are cheap, but not free: it pays to compute so many for each
// token that may still come.
constexpr uint32_t kBehindPerToken = 8;

// The running means of elapsed / predicted, and how fast a bad one of guesses is forgotten, by
// steps: a try after some hundred steps costs little, and never to try again might cost much.
constexpr double kPlainShare = 0.05, kDraftShare = 0.1, kForgetShare = 0.004;
constexpr double kRatioMin = 0.25, kRatioMax = 4;
constexpr double kCorrectionMin = 0.75, kCorrectionMax = 3;

constexpr uint8_t kForcedKind = UINT8_MAX;

// How often the draft model's guesses are right: over all sequences, and in each, which goes on
// from there.
constexpr DraftRate kModelRate(0.7f, 8, 512);
constexpr DraftRate kSourceRate(0.7f, 4, 64);

bool Asks(Speculation mode, Speculation source) {
  return mode == source || mode == Speculation::kAuto;
}

}  // namespace

SpeculationState::SpeculationState()
    : ngram_{.state = nullptr, .draft = {}, .rate = kSourceRate},
      model_{.state = nullptr, .draft = {}, .rate = kSourceRate} {}

Speculator::Speculator(const SpeculationOptions& options, std::unique_ptr<ModelDrafter> model,
                       const base::Clock& clock)
    : options_(options),
      clock_(clock),
      model_(std::move(model)),
      model_rate_(kModelRate),
      schedule_(options.sequences_max) {
  CHECK(options.mode != Speculation::kServer) << "the server's own mode";
  CHECK(options.sequences_max >= 1);
  CHECK(options.drafts_max >= 1 && options.drafts_max <= kDraftsMax) << options.drafts_max;
  states_.reserve(options.sequences_max);
  asking_.reserve(options.sequences_max);
  batch_.reserve(options.sequences_max);
}

std::unique_ptr<SpeculationState> Speculator::Begin(Speculation wanted,
                                                    const SamplingParams& sampling,
                                                    uint32_t sample_index, uint32_t length_max) {
  const Speculation mode = wanted == Speculation::kServer ? options_.mode : wanted;
  const bool asks_model = model_ != nullptr && Asks(mode, Speculation::kDraft);
  const bool asks_ngram = Asks(mode, Speculation::kNgram);
  if (!asks_model && !asks_ngram) return nullptr;
  auto state = std::make_unique<SpeculationState>();
  state->length_max_ = length_max;
  if (asks_ngram) state->ngram_.state = ngram_.Begin(sampling, sample_index, length_max);
  if (asks_model) state->model_.state = model_->Begin(sampling, sample_index, length_max);
  return state;
}

void Speculator::Choose(std::span<const SpeculationItem> items, const StepLoad& load,
                        const StepNs& step_ns) {
  CHECK(items.size() <= options_.sequences_max) << items.size();
  states_.clear();
  batch_.clear();
  for (const SpeculationItem& item : items) {
    Prepare(item);
    if (item.state->ngram_.state != nullptr) batch_.push_back(&item.state->ngram_.draft);
  }
  ngram_.DraftFor(batch_);

  const double correction = std::clamp(draft_ratio_ / plain_ratio_, kCorrectionMin, kCorrectionMax);
  const StepNs corrected_ns = [&step_ns, correction](uint32_t rows) {
    return step_ns(rows) * (rows > 0 ? correction : 1.0);
  };
  ScheduleInput input{.tokens = load.decode_rows + kPromptRowTokens * load.prompt_rows,
                      .gain_min = speculating_ ? kGainToGoOn : kGainToBegin,
                      .drafts_max = load.drafts_max};
  if (model_ != nullptr) {
    const base::Instant begin = clock_.Now();
    AskModel(input, corrected_ns);
    input.spent_ns = static_cast<double>((clock_.Now() - begin).ns);
  }

  batch_.clear();
  for (SpeculationState* state : states_) {
    state->chosen_->guessed = state->chosen_->draft.count;
    batch_.push_back(&state->chosen_->draft);
  }
  speculating_ = schedule_.Choose(batch_, input, corrected_ns).drafts > 0;
  for (SpeculationState* state : states_) {
    Draft& draft = state->chosen_->draft;
    state->count_ = draft.count;
    draft.count = state->chosen_->guessed;
  }
}

void Speculator::Prepare(const SpeculationItem& item) {
  SpeculationState& state = *item.state;
  CHECK(!item.tokens.empty() && item.tokens.size() <= state.length_max_) << item.tokens.size();
  if (state.ngram_.state != nullptr) Score(state.ngram_, ngram_, item.tokens);
  if (state.model_.state != nullptr) Score(state.model_, *model_, item.tokens, &model_rate_);
  const uint32_t max = std::min(item.max, options_.drafts_max);
  Restart(state.ngram_, item, max);
  Restart(state.model_, item, max);
  state.chosen_ = &state.ngram_;
  states_.push_back(&state);
}

void Speculator::Score(DraftSource& source, Drafter& drafter, std::span<const TokenId> tokens,
                       DraftRate* shared) {
  const Draft& draft = source.draft;
  for (uint32_t i = 0; i < draft.count && source.length + i < tokens.size(); ++i) {
    const bool right = draft.guesses[i] == tokens[source.length + i];
    if (draft.kind[i] != kForcedKind) {
      drafter.Learn(*source.state, draft.kind[i], right);
      source.rate.Add(right);
      if (shared != nullptr) shared->Add(right);
    }
    if (!right) return;
  }
}

void Speculator::Restart(DraftSource& source, const SpeculationItem& item, uint32_t max) {
  Draft& draft = source.draft;
  draft.state = source.state.get();
  draft.tokens = item.tokens;
  draft.counts = item.counts;
  draft.max = max;
  draft.count = 0;
  for (const TokenId token : item.forced.first(std::min<size_t>(item.forced.size(), max))) {
    draft.Append(token, 1.0f, kForcedKind);
  }
  source.forced = draft.count;
  source.length = static_cast<uint32_t>(item.tokens.size());
}

void Speculator::AskModel(const ScheduleInput& input, const StepNs& corrected_ns) {
  asking_.clear();
  for (SpeculationState* state : states_) {
    if (asking_.size() == model_->sequences_max()) break;
    if (WantsModel(*state)) asking_.push_back(state);
  }
  if (asking_.empty()) return;
  const uint32_t depth = ModelDepth(input, corrected_ns);
  // Not asked for long, it is given another chance.
  if (depth == 0) model_rate_.Fade();
  batch_.clear();
  for (SpeculationState* state : asking_) {
    DraftSource& source = state->model_;
    if (depth == 0) source.rate.Fade();
    source.draft.max = std::min(source.draft.max, source.forced + depth);
    batch_.push_back(&source.draft);
  }
  if (depth == 0) return;
  model_->DraftFor(batch_);
  for (SpeculationState* state : asking_) {
    DraftSource& source = state->model_;
    if (source.draft.count > source.forced) state->chosen_ = &source;
  }
}

bool Speculator::WantsModel(const SpeculationState& state) const {
  const DraftSource &model = state.model_, &ngram = state.ngram_;
  if (model.state == nullptr || !model_->Serves(*model.state)) return false;
  if (model.draft.count >= model.draft.max) return false;
  const uint32_t left = state.length_max_ - model.length;
  if (model_->Behind(*model.state, model.length) > uint64_t{kBehindPerToken} * left) return false;
  const bool ngram_guesses = ngram.draft.count > ngram.forced;
  return !ngram_guesses || ngram.draft.confidence[ngram.forced] < ModelRate(state);
}

float Speculator::ModelRate(const SpeculationState& state) const {
  return state.model_.rate.ValueOver(model_rate_.value());
}

uint32_t Speculator::ModelDepth(const ScheduleInput& input, const StepNs& corrected_ns) const {
  const uint32_t asking = static_cast<uint32_t>(asking_.size());
  const double pass_ns = model_->PassNs(asking), plain_ns = corrected_ns(0);
  if (input.drafts_max == 0) return 0;
  if (pass_ns <= 0 || plain_ns <= 0) return std::min(kDepthUnmeasured, options_.drafts_max);
  uint32_t best = 0;
  double best_rate = input.tokens / plain_ns * input.gain_min;
  double tokens = input.tokens;
  for (uint32_t depth = 1; depth <= options_.drafts_max; ++depth) {
    for (const SpeculationState* state : asking_) {
      if (state->model_.forced + depth > state->model_.draft.max) continue;
      tokens += std::pow(double{ModelRate(*state)}, depth);
    }
    const double ns = corrected_ns(std::min(asking * depth, input.drafts_max)) + depth * pass_ns;
    if (tokens / ns <= best_rate) continue;
    best_rate = tokens / ns;
    best = depth;
  }
  return best;
}

void Speculator::Observe(uint32_t draft_rows, base::Duration predicted, base::Duration elapsed) {
  if (predicted.ns <= 0 || elapsed.ns <= 0) return;
  const double ratio = std::clamp(
      static_cast<double>(elapsed.ns) / static_cast<double>(predicted.ns), kRatioMin, kRatioMax);
  if (draft_rows > 0) {
    draft_ratio_ += kDraftShare * (ratio - draft_ratio_);
  } else {
    plain_ratio_ += kPlainShare * (ratio - plain_ratio_);
    draft_ratio_ += kForgetShare * (plain_ratio_ - draft_ratio_);
  }
}

}  // namespace plumb::engine
