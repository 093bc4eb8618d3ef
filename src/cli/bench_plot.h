// cli/bench_plot.h
// A measurement as one SVG file: prefill speed over prompt length beside decode speed over batch, a
// line for each context, whiskers from slowest to fastest sample. No scripts, no fonts or images
// from elsewhere.
#pragma once

#include <string>

#include "cli/bench_report.h"

namespace plumb::cli {

// Panels without points are left out. Texts are escaped.
std::string BenchPlot(const EngineBenchReport& report);

}  // namespace plumb::cli
