// cli/local_engine.cc
// From a model's name to a running engine, and from one set of weights to another; behind
// cli/local_engine.h.
#include "cli/local_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/content_hash.h"
#include "cli/format.h"
#include "cli/model_memory.h"
#include "cli/report.h"
#include "cli/sha256.h"
#include "engine/model_drafter.h"
#include "engine/vocabulary.h"
#include "model/inspect.h"
#include "text/deepseek_token_classes.h"

namespace plumb::cli {
namespace {

// Rows of a step with logits: one for each sequence, and some for guesses.
constexpr uint32_t kLogitsRowsMin = 64;

// By the catalogue, where a pull has compared it; else by every byte of the files, with a progress
// line when some must be read.
base::Result<std::string> ContentOf(const ModelReference& reference, const KeptDigests& kept,
                                    const base::Clock& clock, tensor::ThreadPool& pool,
                                    const ProgressOutput& output) {
  if (reference.entry != nullptr && !reference.entry->shipped) {
    return std::string(reference.entry->sha256);
  }
  Progress progress(clock, output, "fingerprint", ProgressUnit::kBytes);
  const std::string label = "fingerprint " + reference.id;
  const auto known =
      FindContentHash(reference.path, kept, clock, pool,
                      {.on_start = [&](uint64_t total) { progress.Start(label, 0, total); },
                       .on_progress = [&](uint64_t done) { progress.Update(done); }});
  progress.Finish();
  if (!known.ok()) return InModel(reference, known.status());
  if (!known->kept.ok()) {
    output.write("note: the next start reads the model's files again: " + known->kept.message() +
                 "\n");
  }
  return known->content;
}

std::string FingerprintOf(const std::string& content, const std::string& numerics_id) {
  Sha256 hash;
  hash.Update(content + "|" + numerics_id);
  return "fp_" + hash.Finish().substr(0, 16);
}

// LoadModel with a progress line; errors name the file.
base::Result<std::unique_ptr<model::Model>> LoadWithProgress(const ModelReference& reference,
                                                             const model::Checkpoint& file,
                                                             model::LoadOptions options,
                                                             const base::Clock& clock,
                                                             const ProgressOutput& output) {
  Progress progress(clock, output, "load", ProgressUnit::kBytes);
  options.progress = [&, started = false](const model::LoadProgress& state) mutable {
    if (!std::exchange(started, true)) {
      progress.Start("load " + reference.id, 0, state.bytes_total);
    }
    progress.Update(state.bytes_done);
  };
  auto loaded = model::LoadModel(file, options);
  progress.Finish();
  if (!loaded.ok()) return InModel(reference, NamingReplay(loaded.status()));
  return loaded;
}

engine::EngineOptions OptionsFor(const EngineSettings& settings,
                                 const LocalEngine::Surroundings& surroundings) {
  engine::EngineOptions options;
  options.metrics = surroundings.metrics;
  options.trace = surroundings.trace;
  options.sequences_max = settings.sequences;
  options.checkpoints_max = settings.checkpoints;
  // So that a file's answers, twice as many as run (cli/generate.cc), have room among those of
  // batch priority.
  options.waiting_max = std::max(options.waiting_max, 4 * settings.sequences);
  options.rows_max = std::max(options.rows_max, settings.sequences);
  options.prefix_cache = settings.prefix_cache == "on";
  options.itl_target = base::Milliseconds(settings.itl_target_ms);
  options.synchronous = settings.synchronous;
  return options;
}

// Whose value an error of Engine::Create is about.
std::string FlagOf(const std::string& field) {
  if (field == "draft_model") return "--speculation";
  if (field == "kv_budget_bytes") return "--kv-memory";
  if (field == "checkpoints_max") return "--checkpoints";
  return field == "sequences_max" ? "--sequences" : "";
}

}  // namespace

base::Result<std::unique_ptr<LocalEngine>> LocalEngine::Load(EngineModels models,
                                                             const EngineSettings& settings,
                                                             const Surroundings& surroundings,
                                                             const ProgressOutput& output) {
  std::unique_ptr<LocalEngine> local(
      new LocalEngine(settings, surroundings.clock, models.cache_folder));
  RETURN_IF_ERROR(local->LoadParts(std::move(models), surroundings, output));
  local->engine_->Start();
  return local;
}

base::Status LocalEngine::LoadParts(EngineModels models, const Surroundings& surroundings,
                                    const ProgressOutput& output) {
  ASSIGN_OR_RETURN(const SpeculationChoice speculation, ParseSpeculation(settings_.speculation));
  ASSIGN_OR_RETURN(kernels_, KernelsByFlag(settings_.kernels));
  pool_ = std::make_unique<tensor::ThreadPool>(
      tensor::ThreadPoolOptions{.threads = settings_.threads, .pin = settings_.pin_threads});
  target_.reference = std::move(models.target);
  const ModelReference& reference = target_.reference;

  const auto file = model::OpenModelFile(reference.path);
  if (!file.ok()) return InModel(reference, file.status());
  ASSIGN_OR_RETURN(
      arithmetic_,
      ArithmeticOf({settings_.numerics, settings_.replay, settings_.kv_format}, **file));
  base::Result<ModelText> text = LoadModelText(**file, settings_.tool_format);
  if (text.status().field() == kToolFormatField) return text.status();
  if (!text.ok()) return InModel(reference, text.status());
  text_ = std::move(text).value();
  RETURN_IF_ERROR(CheckFits(reference, **file));
  ASSIGN_OR_RETURN(target_.model, LoadWithProgress(reference, **file, OptionsToLoad(),
                                                   surroundings.clock, output));
  ASSIGN_OR_RETURN(target_.content, ContentOf(reference, kept_, clock_, *pool_, output));
  target_.fingerprint = FingerprintOf(target_.content, target_.model->info().numerics_id);
  grammars_ = std::make_unique<text::GrammarCompiler>(*text_.tokenizer);

  engine::EngineOptions options = OptionsFor(settings_, surroundings);
  options.model_content = target_.content;
  options.pool = pool_.get();
  options.speculation = speculation.mode;
  if (models.draft) {
    RETURN_IF_ERROR(LoadDraft(*models.draft, OptionsToLoad(), surroundings.clock, output));
    options.draft_model = draft_model_.get();
    options.draft_tokenizer = draft_tokenizer_.get();
  }
  RETURN_IF_ERROR(ChooseKvMemory(options));
  kv_memory_ = options.kv_budget_bytes;
  auto engine =
      engine::Engine::Create(*target_.model, *text_.tokenizer, surroundings.clock, options);
  if (!engine.ok()) return NamingFlag(engine.status(), FlagOf(engine.status().field()));
  engine_ = std::move(engine).value();
  return base::OkStatus();
}

// A draft model's context may be shorter than the target's: beyond it, it does not guess.
base::Status LocalEngine::LoadDraft(const ModelReference& reference, model::LoadOptions options,
                                    const base::Clock& clock, const ProgressOutput& output) {
  const auto file = model::OpenModelFile(reference.path);
  if (!file.ok()) return InModel(reference, file.status());
  auto tokenizer = engine::MakeTokenizer(**file);
  if (!tokenizer.ok()) return InModel(reference, tokenizer.status());
  draft_tokenizer_ = std::move(tokenizer).value();
  RETURN_IF_ERROR(CheckFits(reference, **file));
  options.context_max = 0;
  ASSIGN_OR_RETURN(draft_model_, LoadWithProgress(reference, **file, options, clock, output));
  return base::OkStatus();
}

base::Status LocalEngine::CheckFits(const ModelReference& reference,
                                    const model::Checkpoint& file) const {
  if (settings_.no_memory_check) return base::OkStatus();
  const base::Status status = CheckModelMemory(file, settings_.kv_memory);
  if (status.code() != base::Code::kOverloaded) return InModel(reference, status);
  return InModel(reference, base::Status(status.code(), status.message() +
                                                            "; --no-memory-check loads it all the "
                                                            "same, into swap if there is any"));
}

model::LoadOptions LocalEngine::OptionsToLoad() const {
  const uint32_t rows_max = std::max(engine::EngineOptions().rows_max, settings_.sequences);
  model::LoadOptions options{.pool = *pool_, .kernels = *kernels_, .progress = {}};
  options.rows_max = rows_max;
  options.logits_rows_max =
      std::min(rows_max, std::max(settings_.sequences + engine::kDraftsMax, kLogitsRowsMin));
  options.context_max = settings_.context;
  options.token_classes = [this] { return text::DeepseekTokenClasses(*text_.tokenizer); };
  options.kv_format = arithmetic_.kv_format;
  options.roundings = arithmetic_.roundings;
  options.replay_rows = arithmetic_.replay_rows;
  return options;
}

base::Status LocalEngine::ChooseKvMemory(engine::EngineOptions& options) const {
  const model::ModelInfo& info = target_.model->info();
  options.kv_budget_bytes = settings_.kv_memory;
  if (options.kv_budget_bytes == 0) {
    const uint64_t available = AvailableMemory();
    const uint64_t of_pages =
        KvMemory({info.page_bytes, info.context_max, settings_.sequences}, available);
    options.kv_budget_bytes =
        std::min(engine::MemoryPlan::BudgetFor(info, options, of_pages / info.page_bytes),
                 std::max(of_pages, available / 2));
  }
  if (options.kv_budget_bytes >= info.page_bytes) return base::OkStatus();
  return base::InvalidArgument(
      "--kv-memory",
      fmt::format("--kv-memory: {} is less than one page of this model, {}",
                  FormatBytes(options.kv_budget_bytes), FormatBytes(info.page_bytes)));
}

// ---- replacing ----

// What is not checked by the engine. Requests that wait have their tokens already, so those must
// mean the same to the new weights.
base::Status LocalEngine::CheckReplacement(const model::Checkpoint& file) const {
  ASSIGN_OR_RETURN(const ModelText text, LoadModelText(file, settings_.tool_format));
  const text::Tokenizer& fresh = *text.tokenizer;
  const text::Tokenizer& served = *text_.tokenizer;
  if (fresh.size() != served.size() || !engine::CheckSameTokens(fresh, served).ok() ||
      fresh.bos() != served.bos() || !std::ranges::equal(fresh.end_tokens(), served.end_tokens())) {
    return base::InvalidArgument(
        "model", "its tokenizer is another than the served model's; restart with it instead");
  }
  if (text.chat_format->id() != text_.chat_format->id()) {
    return base::InvalidArgument(
        "model", "its chat format is another than the served model's; restart with it instead");
  }
  if (settings_.no_memory_check) return base::OkStatus();
  ASSIGN_OR_RETURN(const model::Inspection inspection, model::Inspect(file));
  // Keys and values keep their place.
  const uint64_t needed =
      BytesToServe(inspection, 0) - inspection.memory.page_bytes - inspection.memory.state_bytes;
  const uint64_t available = AvailableMemory();
  if (needed <= available) return base::OkStatus();
  return base::Status(base::Code::kOverloaded,
                      fmt::format("it needs {} beside the served weights, and {} are available",
                                  FormatBytes(needed), FormatBytes(available)));
}

base::Status LocalEngine::Replace(
    ModelReference reference, base::Instant deadline,
    const std::function<void(uint32_t version, const std::string&)>& announce) {
  Weights fresh;
  fresh.reference = std::move(reference);
  const auto file = model::OpenModelFile(fresh.reference.path);
  if (!file.ok()) return InModel(fresh.reference, file.status());
  if (const base::Status status = CheckReplacement(**file); !status.ok()) {
    // A tokenizer that cannot be read is the file's fault; one that differs is the caller's.
    return status.field() == "model" ? status : InModel(fresh.reference, status);
  }
  tensor::ThreadPool loader({.threads = settings_.threads});
  model::LoadOptions options = OptionsToLoad();
  options.load_pool = &loader;
  auto loaded = model::LoadModel(**file, options);
  if (!loaded.ok()) return InModel(fresh.reference, NamingReplay(loaded.status()));
  fresh.model = std::move(loaded).value();
  ASSIGN_OR_RETURN(fresh.content, ContentOf(fresh.reference, kept_, clock_, loader, NoProgress()));
  fresh.fingerprint = FingerprintOf(fresh.content, fresh.model->info().numerics_id);
  if (fresh.model->info().numerics_id != target_.model->info().numerics_id) {
    return base::InvalidArgument("model", "its arithmetic is another; restart with it instead");
  }
  announce(engine_->weights_version() + 1, fresh.fingerprint);
  RETURN_IF_ERROR(engine_->SwapModel(*fresh.model, fresh.content, deadline));
  target_ = std::move(fresh);
  return base::OkStatus();
}

std::string LocalEngine::Summary() const {
  const model::ModelInfo& info = target_.model->info();
  std::string summary =
      fmt::format("{} parameters, context {}, {} thread{} ({}), {} for keys and values",
                  FormatCount(info.parameters), engine_->context_max(), pool_->threads(),
                  pool_->threads() == 1 ? "" : "s", kernels_->name, FormatBytes(kv_memory_));
  const engine::EngineStats stats = engine_->stats();
  if (stats.state_bytes > 0) {
    summary += fmt::format(", of it {} for states and {} for checkpoints",
                           FormatBytes(stats.state_bytes), FormatBytes(stats.checkpoint_bytes));
  }
  return summary;
}

}  // namespace plumb::cli
