// cli/local_engine.h
// A model of this process, ready to answer: the parts from file to engine, built in order and owned
// here, for serve, chat, generate and rollout alike; and how its weights are replaced while it
// runs. Read first: cli/engine_settings.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cli/arithmetic.h"
#include "cli/engine_settings.h"
#include "cli/kept_digests.h"
#include "cli/model_store.h"
#include "cli/model_text.h"
#include "cli/progress.h"
#include "engine/engine.h"
#include "engine/trace.h"
#include "model/checkpoint.h"
#include "model/load.h"
#include "model/model.h"
#include "telemetry/metrics.h"
#include "tensor/thread_pool.h"
#include "text/grammar_compiler.h"

namespace plumb::cli {

// A resource type. Thread: main, but for engine(), grammars() (any) and Replace (see there).
class LocalEngine {
 public:
  // What the parts borrow.
  struct Surroundings {
    const base::Clock& clock;
    telemetry::EngineMetrics* metrics = nullptr;  // gets latencies; null: nobody wants them
    engine::EngineTrace* trace = nullptr;         // likewise the phases of steps
  };
  // Loads the models that LocateEngineModels found, with progress on `output`, and starts the
  // engine. kCorrupt, kUnsupported: a file; kInvalidArgument: a setting; kOverloaded: it would not
  // fit into memory. Messages name the file, so they are for the operator only.
  static base::Result<std::unique_ptr<LocalEngine>> Load(EngineModels models,
                                                         const EngineSettings& settings,
                                                         const Surroundings& surroundings,
                                                         const ProgressOutput& output);

  engine::Engine& engine() { return *engine_; }
  text::GrammarCompiler& grammars() { return *grammars_; }
  const text::Tokenizer& tokenizer() const { return *text_.tokenizer; }
  // For a model without one: a format that refuses every conversation, saying so.
  const text::ChatFormat& chat_format() const { return *text_.chat_format; }
  bool can_chat() const { return text_.can_chat; }
  const std::string& id() const { return target_.reference.id; }
  // Names content and arithmetic: equal fingerprints give equal answers.
  const std::string& fingerprint() const { return target_.fingerprint; }
  // SHA-256 over the weights' files, as `plumb model verify` prints it.
  const std::string& content() const { return target_.content; }
  const std::string& numerics_id() const { return target_.model->info().numerics_id; }
  // "134.5M parameters, context 8192, ..." for one line.
  std::string Summary() const;

  // Other weights in the place of the served ones, loaded beside them and put in place by
  // Engine::SwapModel, with its errors. They must have the same shape, tokenizer and chat format
  // (kInvalidArgument, field "model"). kOverloaded: no memory for both; the errors of loading.
  // `announce` learns version and fingerprint just before the first answer may come from them; an
  // error may still follow. On an error the old ones answer as before. Thread: one at a time, and
  // nobody else uses id, fingerprint, content, numerics_id and Summary meanwhile.
  base::Status Replace(ModelReference reference, base::Instant deadline,
                       const std::function<void(uint32_t version, const std::string&)>& announce);

 private:
  // Weights, and what names them.
  struct Weights {
    ModelReference reference;
    std::unique_ptr<model::Model> model;
    std::string content;
    std::string fingerprint;
  };

  LocalEngine(const EngineSettings& settings, const base::Clock& clock,
              const std::string& cache_folder)
      : settings_(settings), clock_(clock), kept_(cache_folder) {}
  base::Status LoadParts(EngineModels models, const Surroundings& surroundings,
                         const ProgressOutput& output);
  base::Status LoadDraft(const ModelReference& reference, model::LoadOptions options,
                         const base::Clock& clock, const ProgressOutput& output);
  // Before it is loaded. kOverloaded: it does not, with --kv-memory if that was given.
  base::Status CheckFits(const ModelReference& reference, const model::Checkpoint& file) const;
  base::Status CheckReplacement(const model::Checkpoint& file) const;
  model::LoadOptions OptionsToLoad() const;
  base::Status ChooseKvMemory(engine::EngineOptions& options) const;

  // In order of construction.
  const EngineSettings settings_;
  const base::Clock& clock_;
  const KeptDigests kept_;  // of the files of models
  const tensor::KernelTable* kernels_ = nullptr;
  Arithmetic arithmetic_;
  uint64_t kv_memory_ = 0;
  std::unique_ptr<tensor::ThreadPool> pool_;
  ModelText text_;
  Weights target_;
  std::unique_ptr<text::Tokenizer> draft_tokenizer_;
  std::unique_ptr<model::Model> draft_model_;
  std::unique_ptr<text::GrammarCompiler> grammars_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace plumb::cli
