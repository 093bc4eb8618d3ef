// cli/trace_file.h
// What engine/trace.h recorded, as a file for the trace viewers of browsers (Chrome's trace event
// format, https://ui.perfetto.dev): the engine's thread above, the host's below, one bar a phase.
#pragma once

#include <string>
#include <vector>

#include "engine/trace.h"

namespace plumb::cli {

// Spans that a run keeps, the latest: some minutes of a busy engine.
constexpr size_t kTraceSpansMax = size_t{1} << 18;

// Times count from the first span, in microseconds.
std::string ChromeTrace(const std::vector<engine::TraceSpan>& spans);

// "12345 spans in trace.json; 87 % of the host's work ran beside a forward".
std::string TraceSummary(const std::string& path, const std::vector<engine::TraceSpan>& spans);

}  // namespace plumb::cli
