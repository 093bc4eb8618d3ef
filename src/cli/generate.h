// cli/generate.h
// `plumb generate` and `plumb rollout`: a file of requests to a file of answers with a model loaded
// here. They differ in what a line of answers holds; the run is cli/line_run.h.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "cli/engine_settings.h"
#include "cli/generate_line.h"
#include "cli/option_table.h"

namespace plumb::cli {

struct GenerateSettings {
  LineKind kind = LineKind::kGenerate;
  EngineSettings engine;
  std::string input;
  std::string output;
  uint64_t seed = 0;
  uint32_t max_tokens = 0;
  uint32_t samples = 1;  // rollout: of a prompt
  bool strict = false;
};

// For either, as settings.kind says; the settings are borrowed.
std::unique_ptr<OptionTable> DeclareGenerate(CLI::App& app, GenerateSettings& settings);

// kInvalidArgument: settings, or files that do not belong together; kInternal: the disk.
base::Status RunGenerate(const GenerateSettings& settings, const VariableReader& variables);

}  // namespace plumb::cli
