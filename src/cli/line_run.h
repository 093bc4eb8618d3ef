// cli/line_run.h
// A file of requests to a file of answers, at full batch, for any generator: what `plumb generate`
// and `plumb rollout` do once a model is there. A line becomes one request or several; a bounded
// number of answers is computed at once, and a line goes out when all of its own are complete.
// Read next: cli/generate_line.h (in), cli/answer_line.h (out), cli/generate_output.h (the file).
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cli/answer_line.h"
#include "cli/generate_line.h"
#include "cli/progress.h"
#include "engine/generator.h"

namespace plumb::cli {

struct LineJob {
  std::string input;
  std::string output;
  LineDefaults defaults;
  bool strict = false;           // the first bad line ends the run, before anything is computed
  std::string settings_key;      // what else decides the answers: model, arithmetic
  uint32_t in_flight_max = 128;  // answers; one request's are never fewer
};
struct LineParts {
  engine::Generator& generator;
  LineModel model;
  const base::Clock& clock;
  ProgressOutput progress;
  WeightsName weights;  // for rollouts
};
struct LineTotals {
  uint64_t lines = 0;            // with content
  uint64_t answered_before = 0;  // by earlier runs
  uint64_t errors = 0;           // of this run
  uint64_t tokens = 0;           // generated in this run
};

// kInvalidArgument (field "--input" or "--output"): files that are not what they should be, or do
// not belong together; kCancelled: the generator was stopped; kInternal: the disk; else the
// generator's errors and the grammar compiler's, but for those that are the line's own fault
// (kInvalidArgument, kUnsupported, kNotFound), which are its answer. What was answered stays, and
// the same call goes on from there.
base::Result<LineTotals> AnswerLines(const LineJob& job, const LineParts& parts);

}  // namespace plumb::cli
