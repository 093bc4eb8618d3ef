// cli/local_engine.h
// A model of this process, ready to answer: the parts from file to engine, built in order and owned
// here, for serve, chat and generate alike. Their settings too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cli/catalogue.h"
#include "cli/model_store.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "engine/engine.h"
#include "model/checkpoint.h"
#include "model/model.h"
#include "telemetry/metrics.h"
#include "tensor/thread_pool.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace plumb::cli {

struct EngineSettings {
  std::string model{kDefaultModel};
  bool no_pull = false;
  uint32_t threads;         // constructed as: all processors
  uint32_t context = 0;     // tokens; 0 = the model's
  uint64_t kv_memory = 0;   // bytes; 0 = by KvMemory
  uint32_t sequences = 64;  // answers computed at once
  std::string kernels = "auto";
  bool pin_threads = false;
  std::string prefix_cache = "on";
  std::string kv_format = "f16";

  EngineSettings();
};

// --model, --threads, --context, --kv-memory, ...
void AddEngineOptions(OptionTable& table, EngineSettings& settings);

// Finds the model of the settings, or pulls it. kNotFound, kUnavailable: no such model here.
base::Result<ModelReference> LocateEngineModel(const EngineSettings& settings,
                                               const VariableReader& variables);

// Bytes of keys and values when nobody says: enough for every sequence at kTypicalTokens, and for
// one of the whole context; at most half of what the machine has available, at least one page.
struct KvNeed {
  uint64_t page_bytes;
  uint32_t context_max;
  uint32_t sequences;
};
constexpr uint64_t kTypicalTokens = 2048;
uint64_t KvMemory(const KvNeed& need, uint64_t available_bytes);
// What new allocations may take on this machine or in this container, from /proc and the cgroup.
uint64_t AvailableMemory();

// A resource type.
class LocalEngine {
 public:
  // What the parts borrow.
  struct Surroundings {
    const base::Clock& clock;
    telemetry::EngineMetrics* metrics =
        nullptr;  // gets the engine's latencies, if anyone wants them
  };
  // Loads the model that LocateEngineModel found, with progress on `output`, and starts the engine.
  // kCorrupt, kUnsupported: the file; kInvalidArgument: a setting. Messages name the file, so they
  // are for the operator only.
  static base::Result<std::unique_ptr<LocalEngine>> Load(ModelReference reference,
                                                         const EngineSettings& settings,
                                                         const Surroundings& surroundings,
                                                         const ProgressOutput& output);

  engine::Engine& engine() { return *engine_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  // For a model without one: a template that refuses every conversation, saying so.
  const text::ChatTemplate& chat_template() const { return *chat_template_; }
  bool can_chat() const { return can_chat_; }
  const std::string& id() const { return reference_.id; }
  // Names content and arithmetic: equal fingerprints give equal answers.
  const std::string& fingerprint() const { return fingerprint_; }
  // "134.5M parameters, context 8192, ..." for one line.
  std::string Summary() const;

 private:
  LocalEngine() = default;
  base::Status LoadParts(const EngineSettings& settings, const Surroundings& surroundings,
                         const ProgressOutput& output);
  base::Status LoadText(const model::Checkpoint& file);

  // In order of construction.
  ModelReference reference_;
  std::string fingerprint_;
  std::string kernels_name_;
  uint64_t kv_memory_ = 0;
  bool can_chat_ = false;
  std::unique_ptr<tensor::ThreadPool> pool_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<text::ChatTemplate> chat_template_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace plumb::cli
