// cli/perplexity.h
// `plumb model perplexity`: how well a model predicts a text and, against a reference, how far its
// next-token distribution is from the reference's. What is counted: cli/perplexity_measure.h.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "cli/model_store.h"

namespace plumb::cli {

struct PerplexitySettings {
  std::string model;      // alias or path
  std::string reference;  // likewise; may be empty
  std::string text;       // path
  uint32_t context = 512;
  uint64_t windows = 0;  // measure at most so many; 0 = all
  uint32_t threads = 0;  // constructed as: all processors
  std::string kernels = "auto";
  bool json = false;

  PerplexitySettings();
};

// Declares the subcommand below `plumb model`. `settings` is borrowed until it has run.
CLI::App* DeclarePerplexity(CLI::App& model_app, PerplexitySettings& settings);

// Measures and prints. `reference` is null without one. kInvalidArgument: a flag, a text that is
// too short or not UTF-8, a reference with another vocabulary; kCorrupt, kUnsupported: a model.
base::Status RunPerplexity(const PerplexitySettings& settings, const ModelReference& model,
                           const ModelReference* reference);

}  // namespace plumb::cli
