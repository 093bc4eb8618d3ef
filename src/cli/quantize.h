// cli/quantize.h
// `plumb model quantize`: a model file into a smaller one (or an exact F32 one), written under
// another name first, so that nothing half-done ever carries the name that was asked for.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "cli/model_store.h"

namespace plumb::cli {

struct QuantizeSettings {
  std::string model;     // alias or path
  std::string type;      // a model::FileType's name
  std::string output;    // path
  std::string measure;   // a text to measure perplexity on before and after; may be empty
  uint32_t threads = 0;  // constructed as: all processors
  bool requantize = false;
  bool force = false;

  QuantizeSettings();
};

// Declares the subcommand below `plumb model`. `settings` is borrowed until it has run.
CLI::App* DeclareQuantize(CLI::App& model_app, QuantizeSettings& settings);

// Quantises the file of `model`. kInvalidArgument: a flag (field() names it), an output that
// exists; kCorrupt, kUnsupported: the model; kInternal: the disk.
base::Status RunQuantize(const QuantizeSettings& settings, const ModelReference& model);

}  // namespace plumb::cli
