// cli/bench_engine.h
// Times model::Model::Forward as the engine calls it, without the engine: prompts in chunks, then
// decode steps of many sequences after contexts of equal length. No sampling, no text.
// Read next: cli/bench_rows.h (what contexts are), cli/bench_cost.h (what it should cost),
// cli/bench_report.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/model.h"

namespace plumb::cli {

struct EngineBenchPlan {
  std::vector<uint32_t> prompts;   // tokens, each >= 1
  std::vector<uint32_t> contexts;  // tokens that a decoded row finds in its pages
  std::vector<uint32_t> batches;   // sequences decoded at once, each >= 1
  uint32_t decode_tokens = 64;     // that each sequence decodes in a sample, >= 1
  uint32_t repeat = 5;             // samples, >= 1, each of decode after steps that warm up
  uint32_t chunk_rows = 512;       // prompt rows of a step, >= 1
  uint64_t kv_memory_max = 0;      // bytes; points that need more are skipped
};

enum class BenchKind : uint8_t { kPrefill, kDecode };
constexpr std::string_view KindName(BenchKind kind) {
  return kind == BenchKind::kPrefill ? "prefill" : "decode";
}

struct BenchPoint {
  BenchKind kind = BenchKind::kPrefill;
  uint32_t prompt = 0;          // tokens computed from position 0; prefill
  uint32_t context = 0;         // decode
  uint32_t batch = 1;           // sequences
  uint64_t tokens = 0;          // of a sample
  std::vector<double> seconds;  // of each sample; empty when skipped
  std::string skipped;          // why, else empty

  double TokensPerSecond(double sample_seconds) const {
    return static_cast<double>(tokens) / sample_seconds;
  }
};

// Of tokens per second over a point's samples. `deviation`: median of |x - median|.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
  double deviation = 0;
};
Spread SpreadOf(std::vector<double> values);  // not empty
Spread SpeedOf(const BenchPoint& point);      // of a point that was not skipped

// kInvalidArgument, field "--prompt", "--context", "--batch" or "--chunk": more than the model
// takes.
base::Status CheckPlan(const EngineBenchPlan& plan, const model::Model& model);

// `done` of `total` token rows, warm-up included, and what is being measured.
using BenchProgress = std::function<void(uint64_t done, uint64_t total, std::string_view what)>;

struct BenchHooks {
  BenchProgress progress = {};             // may be empty
  std::function<double()> read_rate = {};  // bytes per second at this moment; may be empty
};

struct BenchMeasurement {
  std::vector<BenchPoint> points;  // prompts, then contexts by batches, in the order of the plan
  // Bytes per second that memory gave, in order of time: kReadProbes of them before each sample of
  // decode and after the last. Empty where none was asked for, or nothing decodes.
  std::vector<double> read_rates;
};
// What memory gives changes from second to second where others use it too: one figure is noise, the
// median of those of a whole run is not.
constexpr uint32_t kReadProbes = 6;

// Prompts first. Then decode in rounds, one sample of each point in a round (A B A B), since points
// are compared with each other; where contexts are computed (cli/bench_rows.h), one point after the
// other. Errors: CheckPlan's; kOverloaded: the system refuses memory that the plan allows. Thread:
// the model's.
base::Result<BenchMeasurement> MeasureEngine(model::Model& model, const EngineBenchPlan& plan,
                                             const base::Clock& clock, const BenchHooks& hooks);

}  // namespace plumb::cli
