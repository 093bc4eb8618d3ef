// cli/generate.h
// `plumb generate`: a file of requests to a file of answers, at full batch, resumable.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "cli/generate_line.h"
#include "cli/local_engine.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "engine/generator.h"

namespace plumb::cli {

struct GenerateSettings {
  EngineSettings engine;
  std::string input;
  std::string output;
  uint64_t seed = 0;
  uint32_t max_tokens = 0;
  bool strict = false;
};

std::unique_ptr<OptionTable> DeclareGenerate(CLI::App& app, GenerateSettings& settings);

// kInvalidArgument: settings, or files that do not belong together; kInternal: the disk.
base::Status RunGenerate(const GenerateSettings& settings, const VariableReader& variables);

// The run itself, for any generator.
struct GenerateJob {
  std::string input;
  std::string output;
  LineDefaults defaults;
  bool strict = false;       // the first bad line ends the run, before anything is computed
  std::string settings_key;  // what else decides the answers: model, arithmetic
  uint32_t in_flight_max = 128;
};
struct GenerateParts {
  engine::Generator& generator;
  LineModel model;
  const base::Clock& clock;
  ProgressOutput progress;
};
struct GenerateTotals {
  uint64_t lines = 0;            // with content
  uint64_t answered_before = 0;  // by earlier runs
  uint64_t errors = 0;           // of this run
  uint64_t tokens = 0;           // generated in this run
};
base::Result<GenerateTotals> Generate(const GenerateJob& job, const GenerateParts& parts);

}  // namespace plumb::cli
