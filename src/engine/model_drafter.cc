// engine/model_drafter.cc
// A call is a few passes of the draft model: the first over what it has not seen of each sequence,
// each further one over the guesses of the one before. What it computed of guesses that turned out
// wrong is forgotten when the sequence is next seen, by comparing.
#include "engine/model_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace plumb::engine {
namespace {

// No more is guessed for a sequence whose guesses are all right with less probability.
constexpr double kProbabilityMin = 0.1;

// Beyond these a guess is of the next kind; the prior of a kind lies between its bounds.
constexpr std::array<float, ModelDrafter::kKinds - 1> kBounds = {0.1f, 0.2f, 0.35f, 0.5f, 0.65f,
                                                                 0.8f, 0.9f, 0.96f, 0.99f};
constexpr std::array<float, ModelDrafter::kKinds> kPriors = {0.05f, 0.15f, 0.3f,  0.45f, 0.6f,
                                                             0.75f, 0.85f, 0.93f, 0.97f, 0.99f};
constexpr float kRateWeight = 16, kRateMemory = 512;

// Rows that catch up in the first call, of which nothing is measured yet; and in any call.
constexpr uint32_t kCatchUpRowsUnmeasured = 32;
constexpr uint32_t kCatchUpRowsMin = 16;
// A sequence that is no further behind than a step can put it is no catching up.
constexpr uint32_t kBehindMax = kDraftsMax + 2;
// Passes of more rows tell the time of a row, of fewer that of a pass.
constexpr uint32_t kManyRows = 16;

// Names at the end that stand for nothing: vocabularies are padded to round numbers.
constexpr uint32_t kPaddingMax = 1024;

template <size_t... kIndex>
std::array<DraftRate, ModelDrafter::kKinds> Rates(std::index_sequence<kIndex...>) {
  return {DraftRate(kPriors[kIndex], kRateWeight, kRateMemory)...};
}

void Mix(double& mean, double value) { mean = mean == 0 ? value : 0.8 * mean + 0.2 * value; }

}  // namespace

base::Status CheckSameTokens(const text::Tokenizer& draft, const text::Tokenizer& target) {
  const auto refuse = [](std::string message) {
    return base::InvalidArgument("draft_model", std::move(message));
  };
  const auto [fewer, more] = std::minmax({draft.size(), target.size()});
  if (more - fewer > kPaddingMax) {
    return refuse(fmt::format("the draft model has {} tokens, the model {}; take one of its family",
                              draft.size(), target.size()));
  }
  for (uint32_t id = 0; id < fewer; ++id) {
    const TokenId token{id};
    if (draft.TokenName(token) != target.TokenName(token) ||
        draft.TokenBytes(token) != target.TokenBytes(token)) {
      return refuse(fmt::format(
          "token {} is \"{}\" in the draft model and \"{}\" in the model; take one of its family",
          id, draft.TokenName(token), target.TokenName(token)));
    }
  }
  return base::OkStatus();
}

struct ModelDrafter::State final : DraftState {
  State(ModelDrafter& drafter, const SamplingParams& params, uint32_t index, uint32_t length_max)
      : owner(drafter), sampling(params), sample_index(index) {
    sampling.logprobs = true;
    sampling.top_logprobs = 0;
    const uint32_t pages_max = owner.pool_->layout().PagesFor(length_max);
    pages.reserve(std::min(pages_max, owner.pool_->total()));
    page_data.reserve(pages.capacity());
  }
  ~State() override { ReleasePages(); }

  void ReleasePages() {
    for (const kvcache::PageId page : pages) owner.pool_->Release(page);
    pages.clear();
    page_data.clear();
    computed = 0;
  }

  // The sequence is as long as `tokens` now: what was computed of wrong guesses does not count.
  void ForgetWrong(std::span<const TokenId> tokens) {
    const uint32_t known = static_cast<uint32_t>(tokens.size());
    CHECK(known >= length) << "sequences only grow";
    uint32_t right = std::min(computed, length);
    while (right < computed && right < known && tokens[right] == fed[right - length]) ++right;
    // One token at least is computed again: its logits are wanted.
    computed = std::min(right, known - 1);
    length = known;
  }

  ModelDrafter& owner;
  SamplingParams sampling;
  const uint32_t sample_index;
  bool given_up = false;
  uint32_t length = 0;    // of the sequence, when it was last seen
  uint32_t computed = 0;  // tokens in the pages: known ones, and beyond `length` guesses
  std::array<TokenId, kDraftsMax> fed{};  // those guesses
  std::vector<kvcache::PageId> pages;
  std::vector<std::byte*> page_data;
};

base::Result<std::unique_ptr<ModelDrafter>> ModelDrafter::Create(
    model::Model& model, uint32_t candidate_count, const base::Clock& clock,
    const ModelDrafterOptions& options) {
  const model::ModelInfo& info = model.info();
  CHECK(candidate_count >= 1 && info.vocabulary_size >= 1);
  if (info.vocabulary_size > kVocabularySizeMax) {
    return base::InvalidArgument("draft_model",
                                 fmt::format("its vocabulary has {} tokens; at most {} can be",
                                             info.vocabulary_size, kVocabularySizeMax));
  }
  if (!Sampler::CanSample(std::min(candidate_count, info.vocabulary_size), options.never_sampled)) {
    return base::InvalidArgument("draft_model", "it has no token that may be guessed");
  }
  if (info.state_bytes > 0) {
    return base::InvalidArgument(
        "draft_model",
        "it needs a state for each sequence beside its pages, and so cannot guess "
        "for another; take a model without");
  }
  if (model.rows_max() < 2 * kBehindMax) {
    return base::InvalidArgument("draft_model", fmt::format("it computes {} rows at once; {} are "
                                                            "needed",
                                                            model.rows_max(), 2 * kBehindMax));
  }
  ModelDrafterOptions held = options;
  held.sequences_max = std::min({std::max(held.sequences_max, 1u), model.logits_rows_max(),
                                 model.rows_max() / (2 * kBehindMax)});
  held.catch_up_rows_max = std::min(std::max(held.catch_up_rows_max, kCatchUpRowsMin),
                                    model.rows_max() - held.sequences_max * kBehindMax);
  ASSIGN_OR_RETURN(auto pool, kvcache::PagePool::Create({.page_tokens = model::kPageTokens,
                                                         .page_bytes = info.page_bytes},
                                                        options.kv_budget_bytes));
  return std::unique_ptr<ModelDrafter>(new ModelDrafter(
      model, std::min(candidate_count, info.vocabulary_size), clock, held, std::move(pool)));
}

ModelDrafter::ModelDrafter(model::Model& model, uint32_t candidate_count, const base::Clock& clock,
                           const ModelDrafterOptions& options,
                           std::unique_ptr<kvcache::PagePool> pool)
    : model_(model),
      clock_(clock),
      options_(options),
      pool_(std::move(pool)),
      sampler_(model.info().vocabulary_size, candidate_count, options.never_sampled),
      rates_(Rates(std::make_index_sequence<kKinds>())) {
  guessing_.reserve(options.sequences_max);
  rows_.reserve(options.sequences_max);
  tokens_.reserve(options.catch_up_rows_max + options.sequences_max * kBehindMax);
  logits_.resize(size_t{options.sequences_max} * model.info().vocabulary_size);
}

std::unique_ptr<DraftState> ModelDrafter::Begin(const SamplingParams& sampling,
                                                uint32_t sample_index, uint32_t length_max) {
  return std::make_unique<State>(*this, sampling, sample_index, length_max);
}

void ModelDrafter::DraftFor(std::span<Draft* const> batch) {
  guessing_.clear();
  uint32_t catch_up_rows = kCatchUpRowsUnmeasured;
  if (row_ns_ > 0) {
    const double rows = static_cast<double>(options_.catch_up_target.ns) / row_ns_;
    catch_up_rows = static_cast<uint32_t>(
        std::clamp<double>(rows, kCatchUpRowsMin, options_.catch_up_rows_max));
  }
  catch_up_rows = std::min(catch_up_rows, options_.catch_up_rows_max);
  BeginPass();
  for (Draft* draft : batch) {
    if (rows_.size() == options_.sequences_max) break;
    PlanFirst(*draft, catch_up_rows);
  }
  while (!rows_.empty()) Pass();
  for (const Guessing& guessing : guessing_) RestoreCounts(guessing);
}

void ModelDrafter::BeginPass() {
  rows_.clear();
  tokens_.clear();
  logits_rows_ = 0;
}

void ModelDrafter::PlanFirst(Draft& draft, uint32_t& catch_up_rows) {
  CHECK(draft.max <= kDraftsMax && !draft.tokens.empty()) << draft.max;
  State& state = static_cast<State&>(*draft.state);
  if (state.given_up || draft.count >= draft.max) return;
  state.ForgetWrong(draft.tokens);
  const uint32_t end = state.length + draft.count;
  uint32_t rows = end - state.computed;
  const bool guesses = rows <= std::max(kBehindMax, catch_up_rows);
  if (rows > kBehindMax) {
    if (catch_up_rows == 0) return;
    rows = std::min(rows, catch_up_rows);
    catch_up_rows -= rows;
  }
  // The last guess is computed by nobody here.
  const uint32_t reach = guesses ? state.length + draft.max - 1 : state.computed + rows;
  if (!Grow(state, reach) || !AddRows(draft, rows, guesses)) {
    GiveUp(state);
    return;
  }
  if (!guesses) return;
  guessing_.push_back({.draft = &draft, .state = &state});
  if (draft.counts == nullptr) return;
  for (uint32_t i = 0; i < draft.count; ++i) draft.counts->AddGenerated(draft.guesses[i]);
}

bool ModelDrafter::AddRows(const Draft& draft, uint32_t rows, bool guesses) {
  State& state = static_cast<State&>(*draft.state);
  const size_t first = tokens_.size();
  for (uint32_t place = state.computed; place < state.computed + rows; ++place) {
    const bool known = place < state.length;
    const TokenId token = known ? draft.tokens[place] : draft.guesses[place - state.length];
    if (base::Index(token) >= model_.info().vocabulary_size) {
      tokens_.resize(first);
      return false;
    }
    CHECK(tokens_.size() < tokens_.capacity()) << "more rows than were planned for";
    tokens_.push_back(token);
    if (!known) state.fed[place - state.length] = token;
  }
  rows_.push_back({.tokens = std::span(tokens_).subspan(first),
                   .position = state.computed,
                   .pages = state.page_data,
                   .logits_rows = guesses ? 1u : 0u});
  logits_rows_ += guesses ? 1 : 0;
  state.computed += rows;
  return true;
}

void ModelDrafter::Pass() {
  const base::Instant begin = clock_.Now();
  const size_t vocabulary_size = model_.info().vocabulary_size;
  const std::span logits(logits_);
  model_.Forward(rows_, logits.first(logits_rows_ * vocabulary_size));
  const size_t sequences = rows_.size(), rows = tokens_.size();
  size_t row = 0;
  for (Guessing& guessing : guessing_) {
    if (!guessing.going) continue;
    SampleNext(guessing, logits.subspan(row++ * vocabulary_size, vocabulary_size));
  }
  BeginPass();
  for (Guessing& guessing : guessing_) {
    guessing.going = guessing.going && guessing.draft->count < guessing.draft->max &&
                     guessing.probability >= kProbabilityMin;
    if (guessing.going) CHECK(AddRows(*guessing.draft, 1, true)) << "a guess beyond the vocabulary";
  }
  Measure(static_cast<uint32_t>(sequences), static_cast<uint32_t>(rows), clock_.Now() - begin);
}

void ModelDrafter::SampleNext(Guessing& guessing, std::span<float> logits) {
  Draft& draft = *guessing.draft;
  const State& state = *guessing.state;
  const NoiseKey key{.seed = state.sampling.seed,
                     .sample_index = state.sample_index,
                     .position = state.length + draft.count};
  const TokenCounts& counts = draft.counts != nullptr ? *draft.counts : no_counts_;
  sampler_.Sample(logits, state.sampling, counts, key, result_);
  if (!result_.status.ok()) {
    guessing.going = false;
    return;
  }
  const uint8_t kind = KindOf(std::exp(result_.logprob));
  const float confidence = rates_[kind].value();
  draft.Append(result_.token, confidence, kind);
  guessing.probability *= confidence;
  if (draft.counts != nullptr) draft.counts->AddGenerated(result_.token);
}

void ModelDrafter::RestoreCounts(const Guessing& guessing) {
  if (guessing.draft->counts == nullptr) return;
  for (uint32_t i = guessing.draft->count; i > 0; --i) {
    guessing.draft->counts->RemoveGenerated(guessing.draft->guesses[i - 1]);
  }
}

bool ModelDrafter::Grow(State& state, uint32_t length) {
  if (length > model_.info().context_max) return false;
  while (state.pages.size() < pool_->layout().PagesFor(length)) {
    const auto page = pool_->Allocate();
    if (!page) return false;
    CHECK(state.pages.size() < state.pages.capacity()) << "longer than length_max";
    state.pages.push_back(*page);
    state.page_data.push_back(pool_->Data(*page).data());
  }
  return true;
}

void ModelDrafter::GiveUp(State& state) {
  state.ReleasePages();
  state.given_up = true;
}

void ModelDrafter::Measure(uint32_t sequences, uint32_t rows, base::Duration elapsed) {
  const double ns = static_cast<double>(elapsed.ns);
  if (ns <= 0) return;
  if (rows == sequences) {
    Mix(pass_ns_[static_cast<size_t>(std::bit_width(sequences))], ns);
  } else if (rows >= kManyRows) {
    Mix(row_ns_, ns / rows);
  }
}

double ModelDrafter::PassNs(uint32_t sequences) const {
  // The nearest number that was measured, a larger one before a smaller one.
  const size_t wanted = static_cast<size_t>(std::bit_width(sequences));
  for (size_t i = wanted; i < pass_ns_.size(); ++i) {
    if (pass_ns_[i] > 0) return pass_ns_[i];
  }
  for (size_t i = std::min(wanted, pass_ns_.size()); i > 0; --i) {
    if (pass_ns_[i - 1] > 0) return pass_ns_[i - 1];
  }
  return 0;
}

void ModelDrafter::Learn(DraftState&, uint8_t kind, bool right) {
  CHECK(kind < kKinds) << kind;
  rates_[kind].Add(right);
}

bool ModelDrafter::Serves(const DraftState& state) const {
  return !static_cast<const State&>(state).given_up;
}

uint32_t ModelDrafter::Behind(const DraftState& state, uint32_t length) const {
  const State& held = static_cast<const State&>(state);
  return length - std::min({held.computed, held.length, length});
}

uint8_t ModelDrafter::KindOf(float probability) {
  uint8_t kind = 0;
  while (kind < kBounds.size() && probability > kBounds[kind]) ++kind;
  return kind;
}

}  // namespace plumb::engine
