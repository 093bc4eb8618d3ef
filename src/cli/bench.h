// cli/bench.h
// `plumb bench engine`: how fast a model computes here, and what share of this machine that is.
// Wiring: settings, model, measurement, reports.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/local_engine.h"
#include "cli/option_table.h"

namespace plumb::cli {

struct BenchSettings {
  EngineSettings engine;  // model, threads, kernels and pinning of it
  std::vector<uint32_t> prompts = {128, 512, 2048};
  std::vector<uint32_t> contexts = {0, 4096, 16384};
  std::vector<uint32_t> batches = {1, 8, 16, 32};
  bool prompts_given = false;   // the list is the caller's: none of it is left out
  bool contexts_given = false;  // likewise
  uint32_t repeat = 5;
  uint32_t decode_tokens = 64;
  uint32_t chunk = 0;  // 0 = kChunkDefault
  std::string note;
  std::string csv;
  std::string plot;
  bool json = false;
};

// Declares `plumb bench engine`; both are borrowed until the command line is parsed.
std::unique_ptr<OptionTable> DeclareBench(CLI::App& app, BenchSettings& settings);

// kInvalidArgument: a setting, or one that this model does not support; the errors of loading;
// kInternal: the disk.
base::Status RunBench(const BenchSettings& settings, const VariableReader& variables);

// kInvalidArgument, field "--threads": more than twice the `processors` of this machine. Threads
// that wait for each other's processor measure the scheduler, and take minutes to say so.
base::Status CheckBenchThreads(uint32_t threads, uint32_t processors);

// "1,8,16": integers of the range, at most kBenchListMax, not none.
constexpr size_t kBenchListMax = 32;
base::Result<std::vector<uint32_t>> ParseIntegers(std::string_view text, IntegerRange range);

}  // namespace plumb::cli
