// engine/engine_create.cc
// Options checked, cut to what the model can do, and made into the parts of an engine.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"
#include "kvcache/page_chain.h"

namespace plumb::engine {
namespace {

EngineOptions Clamped(EngineOptions options, const model::Model& model) {
  options.rows_max = std::min(options.rows_max, model.rows_max());
  options.prefill_rows_max = std::min(options.prefill_rows_max, options.rows_max);
  if (options.waiting_batch_max == 0) {
    options.waiting_batch_max = std::max(kSamplesMax, options.waiting_max / 4 * 3);
  }
  options.sequences_max =
      std::min({options.sequences_max, model.logits_rows_max(), options.rows_max});
  return options;
}

base::Status CheckOption(const char* field, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return base::OkStatus();
  return base::InvalidArgument(
      field, fmt::format("{} is {}; it must be in [{}, {}]", field, value, low, high));
}

base::Status CheckOptions(const EngineOptions& options) {
  constexpr uint32_t kMax = 1u << 20;
  RETURN_IF_ERROR(CheckOption("sequences_max", options.sequences_max, 1, kMax));
  RETURN_IF_ERROR(CheckOption("waiting_max", options.waiting_max, kSamplesMax, kMax));
  if (options.waiting_batch_max > 0) {
    RETURN_IF_ERROR(CheckOption("waiting_batch_max", options.waiting_batch_max, kSamplesMax,
                                options.waiting_max));
  }
  RETURN_IF_ERROR(CheckOption("rows_max", options.rows_max, 1, kMax));
  if (options.speculation == Speculation::kServer) {
    return base::InvalidArgument("speculation", "speculation cannot be left to the server here");
  }
  if ((options.draft_model == nullptr) != (options.draft_tokenizer == nullptr)) {
    return base::InvalidArgument("draft_model", "a draft model comes with its tokenizer");
  }
  return CheckOption("prefill_rows_max", options.prefill_rows_max, 1, kMax);
}

uint32_t CandidateCount(const model::Model& model, const text::Tokenizer& tokenizer) {
  return std::min(model.info().vocabulary_size, tokenizer.size());
}

// Null without a draft model.
base::Result<std::unique_ptr<ModelDrafter>> MakeModelDrafter(const model::Model& model,
                                                             const text::Tokenizer& tokenizer,
                                                             const base::Clock& clock,
                                                             const EngineOptions& options) {
  if (options.draft_model == nullptr) return std::unique_ptr<ModelDrafter>();
  RETURN_IF_ERROR(CheckSameTokens(*options.draft_tokenizer, tokenizer));
  return ModelDrafter::Create(*options.draft_model, CandidateCount(model, tokenizer), clock,
                              {.kv_budget_bytes = options.draft_kv_budget_bytes,
                               .never_sampled = model.info().never_sampled});
}

}  // namespace

base::Result<std::unique_ptr<Engine>> Engine::Create(model::Model& model,
                                                     const text::Tokenizer& tokenizer,
                                                     const base::Clock& clock,
                                                     const EngineOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  const model::ModelInfo& info = model.info();
  CHECK(info.vocabulary_size > 0 && info.context_max > 0);
  if (info.vocabulary_size > kVocabularySizeMax) {
    return base::Unsupported(fmt::format("a vocabulary of {} tokens; up to {} are supported",
                                         info.vocabulary_size, kVocabularySizeMax));
  }
  if (!Sampler::CanSample(CandidateCount(model, tokenizer), info.never_sampled)) {
    return base::InvalidArgument("model", "it has no token that may be sampled");
  }
  const EngineOptions clamped = Clamped(options, model);
  ASSIGN_OR_RETURN(auto memory, EngineMemory::Create(model, clamped));
  ASSIGN_OR_RETURN(auto drafter, MakeModelDrafter(model, tokenizer, clock, clamped));
  return std::unique_ptr<Engine>(
      new Engine(model, tokenizer, clock, clamped, std::move(memory), std::move(drafter)));
}

Engine::Engine(model::Model& model, const text::Tokenizer& tokenizer, const base::Clock& clock,
               const EngineOptions& options, EngineMemory memory,
               std::unique_ptr<ModelDrafter> model_drafter)
    : info_(model.info()),
      tokenizer_(tokenizer),
      clock_(clock),
      options_(options),
      memory_(std::move(memory)),
      pool_(memory_.pool.get()),
      tree_(memory_.tree.get()),
      states_(memory_.states.get()),
      context_max_(static_cast<uint32_t>(std::min(
          uint64_t{info_.context_max}, uint64_t{pool_->total()} * pool_->layout().page_tokens))),
      logits_rows_max_(std::min(model.logits_rows_max(), options.rows_max)),
      model_(&model),
      scheduler_({.sequences_max = options.sequences_max,
                  .rows_max = options.rows_max,
                  .logits_rows_max = logits_rows_max_,
                  .prefill_rows_max = options.prefill_rows_max,
                  .waiting_max = options.waiting_max,
                  .step_target = options.step_target,
                  .itl_target = options.itl_target},
                 *pool_, tree_, states_),
      speculator_({.mode = options.speculation, .sequences_max = options.sequences_max},
                  std::move(model_drafter), clock),
      logits_(std::make_unique_for_overwrite<float[]>(size_t{logits_rows_max_} *
                                                      info_.vocabulary_size)),
      hidden_(
          std::make_unique_for_overwrite<float[]>(size_t{options.rows_max} * info_.hidden_width)),
      arrivals_(size_t{options.waiting_max} + 1),
      identity_(kvcache::ModelIdentity(options.model_content, info_.numerics_id)),
      host_work_(
          {.clock = clock,
           .counters = counters_,
           .metrics = options.metrics,
           .trace = options.trace,
           .forget = [this](const LiveRequest& live) { Forget(live); },
           .tell_engine = [this] { ended_by_host_.store(true, std::memory_order_release); }}),
      host_(host_work_, {.samples_max = options.waiting_max + kSeatsHeldMax * options.sequences_max,
                         .rows_max = logits_rows_max_,
                         .words_per_mask = (info_.vocabulary_size + 31) / 32,
                         .synchronous = options.synchronous}),
      stall_watch_({.clock = clock,
                    .limit = options.watchdog,
                    .engine_hangs = [this] { return EngineHangs(); },
                    .host_busy = [this] { return host_.busy(); },
                    .host_progress = [this] { return host_work_.progress(); },
                    .fail_all = [this] { return FailAll(); }}) {
  const uint32_t samplers = options.pool != nullptr ? options.pool->threads() : 1;
  samplers_.reserve(samplers);
  while (samplers_.size() < samplers) {
    samplers_.emplace_back(info_.vocabulary_size, CandidateCount(model, tokenizer),
                           info_.never_sampled);
  }
  live_.reserve(size_t{options.waiting_max} + options.sequences_max);
  guessing_.reserve(options.sequences_max);
  guessed_.reserve(options.sequences_max);
  rows_.reserve(options.sequences_max);
  targets_.reserve(options.sequences_max);
}

Engine::~Engine() { Stop(); }

void Engine::Start() {
  base::MutexLock lock(thread_mutex_);
  CHECK(!started_.exchange(true)) << "an engine starts once";
  host_.Start();
  thread_ = base::Thread("engine", [this] { Run(); });
  stall_watch_.Start();
}

}  // namespace plumb::engine
