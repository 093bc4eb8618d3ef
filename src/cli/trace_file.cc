// cli/trace_file.cc
// One line of JSON for each span, behind cli/trace_file.h.
#include "cli/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace plumb::cli {
namespace {

constexpr int kEngineThread = 1;
constexpr int kHostThread = 2;

std::string ThreadName(int thread, std::string_view name) {
  return fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
                     thread, name);
}

}  // namespace

std::string ChromeTrace(const std::vector<engine::TraceSpan>& spans) {
  base::Instant first{};
  if (!spans.empty()) {
    first = std::ranges::min(spans, {}, [](const auto& span) { return span.begin.ns; }).begin;
  }
  const auto micros = [](base::Duration duration) {
    return static_cast<double>(duration.ns) * 1e-3;
  };
  std::string json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  json += ThreadName(kEngineThread, "engine") + ",\n" + ThreadName(kHostThread, "host");
  for (const engine::TraceSpan& span : spans) {
    fmt::format_to(
        std::back_inserter(json),
        ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"name\":\"{}\",\"ts\":{:.3f},\"dur\":{:.3f},"
        "\"args\":{{\"step\":{},\"rows\":{}}}}}",
        engine::IsHostPhase(span.phase) ? kHostThread : kEngineThread,
        engine::TracePhaseName(span.phase), micros(span.begin - first),
        micros(span.end - span.begin), span.step, span.rows);
  }
  return json + "\n]}\n";
}

std::string TraceSummary(const std::string& path, const std::vector<engine::TraceSpan>& spans) {
  return fmt::format("{} spans in {}; {:.0f} % of the host's work ran beside a forward",
                     spans.size(), path, 100 * engine::HiddenHostShare(spans));
}

}  // namespace plumb::cli
