// cli/bench_report.h
// A measurement for people (table), for other programs (CSV, JSON), each with what is needed to
// judge it: the machine, its probe, the model, every sample. The plot: cli/bench_plot.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/bench_cost.h"
#include "cli/bench_engine.h"
#include "cli/bench_machine.h"
#include "model/model.h"

namespace plumb::cli {

struct EngineBenchReport {
  MachineDescription machine;
  MachineProbe probe;
  model::ModelInfo model;
  ModelCost cost;
  std::string model_id;
  uint64_t file_bytes = 0;
  std::string kernels;  // name of the table
  uint32_t threads = 0;
  uint32_t chunk_rows = 0;
  uint32_t decode_tokens = 0;
  std::string note;  // the caller's own, one line
  int64_t unix_seconds = 0;
  std::vector<BenchPoint> points;
};

// As shares of the probe; 0 where it is not known. `read` is the median of ReadSharesOf, the others
// are of the median sample. The integer shares are those of all the point's operations, as if none
// were f32.
struct Shares {
  double read = 0;
  double dot8 = 0;
  double dot16 = 0;
  double fma = 0;
};
// Of each sample: its bytes per second by what memory gave right before and after it (their mean),
// or by the probe's best where that was not measured. Empty where the bytes are not known.
std::vector<double> ReadSharesOf(const EngineBenchReport& report, const BenchPoint& point);
Shares SharesOf(const EngineBenchReport& report, const BenchPoint& point);

std::string BenchTable(const EngineBenchReport& report);
// Lines "# key: value", a heading, then one line for each sample; skipped points are comments.
std::string BenchCsv(const EngineBenchReport& report);
std::string BenchJson(const EngineBenchReport& report);

}  // namespace plumb::cli
