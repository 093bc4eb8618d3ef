// cli/engine_settings.h
// The settings of an engine that several subcommands share, as flags, and what they mean for this
// machine. Read next: cli/local_engine.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/catalogue.h"
#include "cli/model_store.h"
#include "cli/option_table.h"
#include "engine/request.h"
#include "tensor/kernel_table.h"

namespace plumb::cli {

struct EngineSettings {
  std::string model{kDefaultModel};
  bool no_pull = false;
  uint32_t threads;          // constructed as: all processors
  uint32_t context = 0;      // tokens; 0 = the model's
  uint64_t kv_memory = 0;    // bytes; 0 = by KvMemory
  uint32_t checkpoints = 0;  // 0 = by the memory
  uint32_t sequences = 64;   // answers computed at once
  std::string kernels = "auto";
  bool pin_threads = false;
  bool no_memory_check = false;
  std::string prefix_cache = "on";
  std::string kv_format = "f16";
  std::string numerics;  // as cli/arithmetic.h has them
  std::string replay;
  std::string tool_format = "auto";  // text/template_tools.h
  std::string speculation = "auto";  // see ParseSpeculation
  uint32_t itl_target_ms = 0;        // 0 = none
  bool synchronous = false;

  EngineSettings();
};

// --model, --threads, --context, --kv-memory, ...
void AddEngineOptions(OptionTable& table, EngineSettings& settings);

// What --speculation says: off, ngram, auto, or draft:MODEL.
struct SpeculationChoice {
  engine::Speculation mode = engine::Speculation::kAuto;
  std::string draft_model;  // alias or path; empty: none
};
// kInvalidArgument, field "--speculation".
base::Result<SpeculationChoice> ParseSpeculation(const std::string& text);

// tensor::SelectKernels for the flag --kernels, which errors name.
base::Result<const tensor::KernelTable*> KernelsByFlag(const std::string& name);

// Finds the model of the settings, or pulls it. kNotFound, kUnavailable: no such model here.
base::Result<ModelReference> LocateEngineModel(const EngineSettings& settings,
                                               const VariableReader& variables);

// The same, and the draft model if --speculation names one.
struct EngineModels {
  ModelReference target;
  std::optional<ModelReference> draft;
  std::string cache_folder;  // for what is known of their files; empty: none
};
base::Result<EngineModels> LocateEngineModels(const EngineSettings& settings,
                                              const VariableReader& variables);

// Bytes of pages when nobody says: enough for every sequence at kTypicalTokens, and for one of the
// whole context; at most half of what the machine has available, at least one page.
struct KvNeed {
  uint64_t page_bytes;
  uint32_t context_max;
  uint32_t sequences;
};
constexpr uint64_t kTypicalTokens = 2048;
uint64_t KvMemory(const KvNeed& need, uint64_t available_bytes);
// What new allocations may take on this machine or in this container: from /proc, the control
// groups and the limit of the process's address space, whichever leaves least.
uint64_t AvailableMemory();

}  // namespace plumb::cli
