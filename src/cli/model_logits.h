// cli/model_logits.h
// `plumb model logits`: the logits of every position of a sequence of token ids, as a .npy file,
// for comparison with other implementations. No tokenizer, no sampling, no engine.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "cli/model_store.h"

namespace plumb::cli {

struct LogitsSettings {
  std::string model;     // alias or path
  std::string ids;       // path
  std::string output;    // path
  std::string numerics;  // as cli/arithmetic.h has them; kvq
  std::string replay;    // off
  uint32_t rows = 128;   // computed in a step
  uint32_t threads = 0;  // constructed as: all processors
  std::string kernels = "auto";
  CLI::App* app = nullptr;  // once declared

  LogitsSettings();
};

// Declares the subcommand below `plumb model`. `settings` is borrowed until it has run.
void DeclareLogits(CLI::App& model_app, LogitsSettings& settings);

// Computes, and writes the file when all is computed. kInvalidArgument: a flag, an output that is
// there and no .npy file, or ids that are no ids of this model; kCorrupt, kUnsupported: the model,
// or logits that are not finite; kInternal: the file cannot be written; kOverloaded: another run
// writes it; kCancelled: a signal came.
base::Status RunLogits(const LogitsSettings& settings, const ModelReference& model);

// Token ids as a JSON array or as decimal numbers between white space; none reaches `vocabulary`.
// kInvalidArgument (field "--ids"): anything else, or none at all.
base::Result<std::vector<base::TokenId>> ParseIds(std::string_view text, uint32_t vocabulary);

// The head of a .npy file (version 1.0) of f32 [rows, columns], row-major, to which the values are
// appended. Source: NEP 1.
std::string NpyHeader(uint64_t rows, uint64_t columns);

}  // namespace plumb::cli
