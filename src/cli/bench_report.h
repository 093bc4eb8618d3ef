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
  std::vector<double> read_rates;  // BenchMeasurement's
};

// Bytes per second that memory gave during the run: of read_rates, or the probe's best where there
// are none. One yardstick for all points of a run.
struct ReadBandwidth {
  double median = 0;
  double best = 0;  // of the probe too
};
ReadBandwidth ReadBandwidthOf(const EngineBenchReport& report);

// Bytes of weights, keys and values that a sample reads; 0 where they are not known.
double BytesOf(const EngineBenchReport& report, const BenchPoint& point);

// Of the median sample; 0 where it is not known. `read` and `read_of_best`: its bytes per second by
// the median and the best of ReadBandwidthOf(report), which is sorted once for all points. The
// others are of the probe; the integer shares are those of all the point's operations, as if none
// were f32.
struct Shares {
  double read = 0;
  double read_of_best = 0;
  double dot8 = 0;
  double dot16 = 0;
  double fma = 0;
};
Shares SharesOf(const EngineBenchReport& report, const BenchPoint& point,
                const ReadBandwidth& read);

std::string BenchTable(const EngineBenchReport& report);
// Lines "# key: value", a heading, then one line for each sample, and of kind "memory" for each of
// read_rates; skipped points are comments.
std::string BenchCsv(const EngineBenchReport& report);
std::string BenchJson(const EngineBenchReport& report);

}  // namespace plumb::cli
