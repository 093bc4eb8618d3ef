// cli/bench_report.cc
// Layout of measurements, behind cli/bench_report.h. Texts from a model file or the system are made
// safe for a terminal first.
#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/format.h"
#include "cli/version_command.h"

namespace plumb::cli {
namespace {

constexpr size_t kTextBytesMax = 500;

std::string Day(int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Work WorkOf(const EngineBenchReport& report, const BenchPoint& point) {
  if (point.kind == BenchKind::kPrefill) {
    return PrefillWork(report.cost, point.prompt, report.chunk_rows);
  }
  return DecodeWork(report.cost, {point.batch, point.context, report.decode_tokens});
}

double SafeShare(double amount, double seconds, double peak) {
  return peak > 0 && seconds > 0 ? amount / seconds / peak : 0;
}

// What memory gave beside a sample; 0 where that was not measured.
double ReadRateAt(const BenchPoint& point, size_t sample) {
  if (point.read_rates.size() <= sample + 1) return 0;
  return (point.read_rates[sample] + point.read_rates[sample + 1]) / 2;
}

std::string Percent(double share) {
  return share > 0 ? fmt::format("{:.0f} %", 100 * share) : std::string("-");
}

// "name", "value" in the order in which they are shown.
std::vector<std::pair<std::string, std::string>> Description(const EngineBenchReport& report) {
  const MachineDescription& machine = report.machine;
  const MachineProbe& probe = report.probe;
  const auto giga = [](double value) { return fmt::format("{:.1f}", value * 1e-9); };
  std::vector<std::pair<std::string, std::string>> rows = {
      {"date", Day(report.unix_seconds)},
      {"plumb", fmt::format("{} ({})", kVersion, report.model.numerics_id)},
      {"note", report.note},
      {"cpu", machine.cpu},
      {"flags", machine.flags},
      {"processors", fmt::format("{}", machine.processors)},
      {"memory_bytes", fmt::format("{}", machine.memory_bytes)},
      {"system", machine.system},
      {"compiler", machine.compiler},
      {"load", machine.load},
      {"threads", fmt::format("{}", report.threads)},
      {"kernels", report.kernels},
      {"chunk_rows", fmt::format("{}", report.chunk_rows)},
      {"model", report.model_id},
      {"model_name", report.model.name},
      {"architecture", report.model.architecture},
      {"parameters", fmt::format("{}", report.model.parameters)},
      {"file_bytes", fmt::format("{}", report.file_bytes)},
      {"resident_weight_bytes", fmt::format("{}", report.model.weight_bytes)},
      {"kv_bytes_per_token", fmt::format("{}", report.model.page_bytes / model::kPageTokens)},
      {"probe_read_gb_per_s", giga(probe.read_bytes_per_second)},
      {"probe_fma_gflop_per_s", giga(probe.fma_per_second)},
      {"probe_int8_gop_per_s", giga(probe.dot8_per_second)},
      {"probe_int16_gop_per_s", giga(probe.dot16_per_second)},
      {"probe_int8_instructions", probe.dot8_instructions},
      {"probe_int16_instructions", probe.dot16_instructions},
  };
  for (auto& [name, value] : rows) value = Printable(value, kTextBytesMax);
  return rows;
}

std::string ProbeText(const EngineBenchReport& report) {
  const MachineProbe& probe = report.probe;
  return fmt::format(
      "machine   {}, {} of {} processors, {} kernels\n"
      "probe     {:6.1f} GB/s    read\n"
      "          {:6.0f} GFLOP/s f32    {}\n"
      "          {:6.0f} Gop/s   8-bit  {}\n"
      "          {:6.0f} Gop/s   16-bit {}\n",
      Printable(report.machine.cpu, 100), report.threads, report.machine.processors, report.kernels,
      probe.read_bytes_per_second * 1e-9, probe.fma_per_second * 1e-9, probe.fma_instructions,
      probe.dot8_per_second * 1e-9, probe.dot8_instructions, probe.dot16_per_second * 1e-9,
      probe.dot16_instructions);
}

std::string PointText(const EngineBenchReport& report, const BenchPoint& point) {
  const bool prefill = point.kind == BenchKind::kPrefill;
  const std::string head =
      prefill ? fmt::format("prefill  {:>7}                 ", point.prompt)
              : fmt::format("decode            {:>7}  {:>5} ", point.context, point.batch);
  if (!point.skipped.empty()) return head + " skipped: " + point.skipped + "\n";
  const Spread speed = SpeedOf(point);
  const Shares shares = SharesOf(report, point);
  const std::string rate = point.read_rates.empty()
                               ? "-"
                               : fmt::format("{:.1f}", SpreadOf(point.read_rates).median * 1e-9);
  return head + fmt::format("{:>10.1f} {:>10.1f} {:>10.1f} {:>6} {:>6} {:>6} {:>6} {:>6}\n",
                            speed.median, speed.min, speed.max, rate, Percent(shares.read),
                            Percent(shares.dot8), Percent(shares.dot16), Percent(shares.fma));
}

}  // namespace

std::vector<double> ReadSharesOf(const EngineBenchReport& report, const BenchPoint& point) {
  std::vector<double> shares;
  if (!report.cost.known) return shares;
  const double bytes = WorkOf(report, point).bytes;
  for (size_t i = 0; i < point.seconds.size(); ++i) {
    const double beside = ReadRateAt(point, i);
    shares.push_back(SafeShare(bytes, point.seconds[i],
                               beside > 0 ? beside : report.probe.read_bytes_per_second));
  }
  return shares;
}

Shares SharesOf(const EngineBenchReport& report, const BenchPoint& point) {
  if (!report.cost.known || point.seconds.empty()) return {};
  const double seconds = SpreadOf(point.seconds).median;
  const Work work = WorkOf(report, point);
  const MachineProbe& probe = report.probe;
  Shares shares;
  shares.read = SpreadOf(ReadSharesOf(report, point)).median;
  shares.fma = SafeShare(work.operations, seconds, probe.fma_per_second);
  if (report.cost.quantised) {
    shares.dot8 = SafeShare(work.operations, seconds, probe.dot8_per_second);
    shares.dot16 = SafeShare(work.operations, seconds, probe.dot16_per_second);
  }
  return shares;
}

std::string BenchTable(const EngineBenchReport& report) {
  const model::ModelInfo& info = report.model;
  std::string text = ProbeText(report);
  text += fmt::format("model     {}: {} parameters, {} resident, {} a token of keys and values\n\n",
                      Printable(report.model_id, 100), FormatCount(info.parameters),
                      FormatBytes(info.weight_bytes),
                      FormatBytes(info.page_bytes / model::kPageTokens));
  text += fmt::format(
      "{:<8} {:>7} {:>8}  {:>5} {:>10} {:>10} {:>10} {:>6} {:>6} {:>6} {:>6} {:>6}\n", "", "prompt",
      "context", "batch", "tokens/s", "min", "max", "GB/s", "read", "8-bit", "16-bit", "f32");
  for (const BenchPoint& point : report.points) text += PointText(report, point);
  return text +
         "GB/s: what memory gave right before and after each sample of decode; read is the share\n"
         "of that. The other shares are of the probe, for the median.\n";
}

std::string BenchCsv(const EngineBenchReport& report) {
  std::string text;
  for (const auto& [name, value] : Description(report)) text += "# " + name + ": " + value + "\n";
  text +=
      "kind,prompt,context,batch,sample,tokens,seconds,tokens_per_second,read_gb_per_s,"
      "read_share,int8_share,int16_share,fma_share\n";
  for (const BenchPoint& point : report.points) {
    const std::string head =
        fmt::format("{},{},{},{}", KindName(point.kind), point.prompt, point.context, point.batch);
    if (!point.skipped.empty()) text += "# skipped " + head + ": " + point.skipped + "\n";
    for (size_t i = 0; i < point.seconds.size(); ++i) {
      BenchPoint sample = point;
      sample.seconds = {point.seconds[i]};
      const double rate = ReadRateAt(point, i);
      if (rate > 0) sample.read_rates = {rate, rate};
      const Shares shares = SharesOf(report, sample);
      text += fmt::format("{},{},{},{:.6f},{:.3f},{},{:.4f},{:.4f},{:.4f},{:.4f}\n", head, i,
                          point.tokens, point.seconds[i], point.TokensPerSecond(point.seconds[i]),
                          rate > 0 ? fmt::format("{:.3f}", rate * 1e-9) : "", shares.read,
                          shares.dot8, shares.dot16, shares.fma);
    }
  }
  return text;
}

std::string BenchJson(const EngineBenchReport& report) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : Description(report)) json["run"][name] = value;
  json["points"] = nlohmann::ordered_json::array();
  for (const BenchPoint& point : report.points) {
    nlohmann::ordered_json row = {{"kind", KindName(point.kind)},
                                  {"prompt", point.prompt},
                                  {"context", point.context},
                                  {"batch", point.batch},
                                  {"tokens", point.tokens}};
    if (point.skipped.empty()) {
      const Spread speed = SpeedOf(point);
      const Shares shares = SharesOf(report, point);
      row.update({{"seconds", point.seconds},
                  {"tokens_per_second", speed.median},
                  {"min", speed.min},
                  {"max", speed.max},
                  {"deviation", speed.deviation},
                  {"read_bytes_per_second", point.read_rates},
                  {"read_shares", ReadSharesOf(report, point)},
                  {"read_share", shares.read},
                  {"int8_share", shares.dot8},
                  {"int16_share", shares.dot16},
                  {"fma_share", shares.fma}});
    } else {
      row["skipped"] = point.skipped;
    }
    json["points"].push_back(std::move(row));
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace plumb::cli
