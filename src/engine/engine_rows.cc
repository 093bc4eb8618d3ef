// engine/engine_rows.cc
// What a step computes: guesses for what follows, rows from the plan, and which of them have logits
// or hidden states that something is done with. Read next: engine_sample.cc.
#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"

namespace plumb::engine {

void Engine::Guess() {
  TraceScope scope(options_.trace, clock_, TracePhase::kDraft, step_);
  guessing_.clear();
  guessed_.clear();
  for (Sequence* sequence : scheduler_.running()) {
    sequence->drafts = 0;
    if (!sequence->decoding()) continue;
    Sample& sample = *sequence->sample;
    // Without its own tokens, or a grammar that has not looked at its first one: nothing yet.
    const bool masked = sample.request.request.grammar != nullptr;
    if (!sample.started || (masked && sample.grammar == nullptr)) continue;
    const bool penalties = UsesPenalties(sample.request.request.sampling);
    guessing_.push_back(&sample);
    guessed_.push_back({.state = sample.speculation.get(),
                        .tokens = std::span(sample.tokens).first(sequence->length),
                        .counts = penalties ? &sample.counts : nullptr,
                        .max = GuessesMax(sample),
                        .forced = sample.forced});
  }
  if (options_.unweighed_drafter != nullptr) {
    GuessUnweighed();
  } else {
    GuessWeighed();
  }
}

void Engine::GuessWeighed() {
  // Those without speculation have what is forced, at most.
  size_t with_state = 0;
  for (size_t i = 0; i < guessed_.size(); ++i) {
    if (guessed_[i].state == nullptr) {
      SetDrafts(*guessing_[i], guessing_[i]->forced);
    } else {
      std::swap(guessed_[with_state], guessed_[i]);
      std::swap(guessing_[with_state++], guessing_[i]);
    }
  }
  if (with_state == 0) return;
  forecast_ = scheduler_.Foresee();
  const auto step_ns = [this](uint32_t drafts) {
    return static_cast<double>(scheduler_.cost().Predict(forecast_.WithDrafts(drafts)).ns);
  };
  speculator_.Choose(std::span(guessed_).first(with_state),
                     {.decode_rows = forecast_.decode.rows,
                      .prompt_rows = forecast_.prompt_rows,
                      .drafts_max = forecast_.drafts_max},
                     step_ns);
  for (size_t i = 0; i < with_state; ++i) {
    SetDrafts(*guessing_[i], guessed_[i].state->guesses());
  }
}

void Engine::GuessUnweighed() {
  unweighed_.resize(guessed_.size());
  unweighed_batch_.clear();
  for (size_t i = 0; i < guessed_.size(); ++i) {
    engine::Draft& draft = unweighed_[i];
    draft = {.state = guessing_[i]->unweighed.get(),
             .tokens = guessed_[i].tokens,
             .counts = guessed_[i].counts,
             .max = guessed_[i].max};
    for (const TokenId token : guessed_[i].forced) {
      if (draft.count < draft.max) draft.Append(token, 1.0f, 0);
    }
    unweighed_batch_.push_back(&draft);
  }
  options_.unweighed_drafter->DraftFor(unweighed_batch_);
  for (size_t i = 0; i < guessed_.size(); ++i) {
    CHECK(unweighed_[i].count <= unweighed_[i].max);
    SetDrafts(*guessing_[i], std::span(unweighed_[i].guesses).first(unweighed_[i].count));
  }
}

void Engine::SetDrafts(Sample& sample, std::span<const TokenId> guesses) {
  guesses = guesses.first(std::min<size_t>(guesses.size(), GuessesMax(sample)));
  // What it refuses cannot be sampled: rows behind it would be in vain.
  if (sample.grammar != nullptr && !guesses.empty()) {
    guesses = guesses.first(sample.grammar->CountAllowed(guesses));
  }
  Sequence& sequence = sample.sequence;
  std::copy(guesses.begin(), guesses.end(), sample.tokens.begin() + sequence.length);
  sequence.drafts = static_cast<uint32_t>(guesses.size());
}

uint32_t Engine::GuessesMax(const Sample& sample) const {
  // At worst all of them were computed in vain, and the next step begins so many rows before.
  const Sequence& sequence = sample.sequence;
  return std::min({kDraftsMax, info_.backtrack_max, sequence.length_max - sequence.length - 1});
}

const StepPlan& Engine::MakePlan() {
  TraceScope scope(options_.trace, clock_, TracePhase::kPlan, step_);
  return scheduler_.Plan();
}

void Engine::Prepare(const StepPlan& plan) {
  rows_.clear();
  targets_.clear();
  host_.masks().items.clear();
  host_.masks().step = step_;
  planned_ = plan.shape();
  draft_rows_ = 0;
  mask_count_ = 0;
  hidden_rows_ = 0;
  uint32_t logits_row = 0;
  for (const PlannedRows& item : plan.items) {
    Sample& sample = *item.sequence->sample;
    if (!sample.started) Begin(sample);
    const uint32_t end = item.position + item.rows;
    const uint32_t known = item.sequence->length - std::min(end, item.sequence->length);
    rows_.push_back(
        {.tokens = std::span(sample.tokens).subspan(item.position, item.rows),
         .position = item.position,
         .pages = item.sequence->page_data,
         .logits_rows = item.logits_rows,
         .state = item.sequence->held.data,
         .replay_from = item.sequence->rows_replay_from(),
         .upcoming = std::span(sample.tokens).subspan(end, std::min(known, item.rows))});
    if (item.logits_rows > 0) AddTarget(item, logits_row);
    if (item.sequence->embeds()) AddHiddenTarget(item);
    logits_row += item.logits_rows;
  }
  CHECK(logits_row == plan.logits_rows && logits_row <= logits_rows_max_) << logits_row;
}

void Engine::Begin(Sample& sample) {
  const Request& request = sample.request.request;
  Sequence& sequence = sample.sequence;
  sample.started = true;
  for (const auto& sibling : sample.request.samples) sibling->sequence.begun = true;
  sample.weights_version = weights_version();
  sample.tokens.resize(sequence.length_max);
  std::copy(request.prompt.begin(), request.prompt.end(), sample.tokens.begin());
  sequence.tokens = sample.tokens.data();
  sample.forced.reserve(kDraftsMax);
  if (UsesPenalties(request.sampling)) {
    sample.counts.Reset(std::min(info_.vocabulary_size, sequence.length_max));
    for (const TokenId token : request.prompt) sample.counts.AddPrompt(token);
  }
  if (sequence.embeds()) {
    sample.pooler = std::make_unique<Pooler>(request.pooling, info_.hidden_width);
  } else if (options_.unweighed_drafter != nullptr) {
    sample.unweighed =
        options_.unweighed_drafter->Begin(request.sampling, sample.index, sequence.length_max);
  } else {
    sample.speculation =
        speculator_.Begin(request.speculation, request.sampling, sample.index, sequence.length_max);
  }
  counters_.prompt_tokens.fetch_add(request.prompt.size(), std::memory_order_relaxed);
  LeaveQueue(sample);
}

void Engine::AddTarget(const PlannedRows& item, uint32_t first_row) {
  const Sequence& sequence = *item.sequence;
  Sample& sample = *sequence.sample;
  const uint32_t end = item.position + item.rows;
  const bool samples = end == sequence.length + sequence.drafts;
  Target target{.sample = &sample,
                .position = end - item.logits_rows,
                .first_row = first_row,
                .sample_rows = samples ? 1 + sequence.drafts : 0};
  CHECK(target.sample_rows <= item.logits_rows);
  target.prompt_rows = item.logits_rows - target.sample_rows;
  CHECK(target.prompt_rows == 0 || target.position == sequence.logits_from)
      << target.position << " " << sequence.logits_from;
  if (samples && sample.request.request.grammar != nullptr) {
    MaskWork& masks = host_.masks();
    masks.items.push_back(
        {.sample = &sample, .first_mask = mask_count_, .drafts = sequence.drafts});
    target.mask = &masks.items.back();
    mask_count_ += target.sample_rows;
  }
  if (samples) draft_rows_ += sequence.drafts;
  targets_.push_back(target);
}

void Engine::AddHiddenTarget(const PlannedRows& item) {
  const Sequence& sequence = *item.sequence;
  const uint32_t end = item.position + item.rows;
  if (end <= sequence.hidden_from) return;
  const uint32_t count = std::min(end - sequence.hidden_from, item.rows);
  CHECK(end - count == sequence.hidden_from) << end - count << " " << sequence.hidden_from;
  const std::span<float> hidden(hidden_.get() + size_t{hidden_rows_} * info_.hidden_width,
                                size_t{count} * info_.hidden_width);
  hidden_rows_ += count;
  rows_.back().hidden = hidden;
  targets_.push_back(
      {.sample = sequence.sample, .position = end - count, .first_row = 0, .hidden = hidden});
}

void Engine::Forward(const StepPlan& plan) {
  TraceScope scope(options_.trace, clock_, TracePhase::kForward, step_);
  scope.set_rows(plan.rows);
  model_->Forward(rows_, {logits_.get(), size_t{plan.logits_rows} * info_.vocabulary_size});
  counters_.computed_rows.fetch_add(plan.rows, std::memory_order_relaxed);
}

}  // namespace plumb::engine
