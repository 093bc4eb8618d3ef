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

std::string GigabytesText(double bytes) {
  return bytes > 0 ? fmt::format("{:.3f}", bytes * 1e-9) : std::string();
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

std::string PointText(const EngineBenchReport& report, const BenchPoint& point,
                      const ReadBandwidth& read) {
  const bool prefill = point.kind == BenchKind::kPrefill;
  const std::string head =
      prefill ? fmt::format("prefill  {:>7}                 ", point.prompt)
              : fmt::format("decode            {:>7}  {:>5} ", point.context, point.batch);
  if (!point.skipped.empty()) return head + " skipped: " + point.skipped + "\n";
  const Spread speed = SpeedOf(point);
  const Shares shares = SharesOf(report, point, read);
  const double bytes = BytesOf(report, point);
  const std::string rate =
      bytes > 0 ? fmt::format("{:.1f}", bytes / SpreadOf(point.seconds).median * 1e-9) : "-";
  return head + fmt::format("{:>10.1f} {:>10.1f} {:>10.1f} {:>6} {:>6} {:>6} {:>6} {:>6}\n",
                            speed.median, speed.min, speed.max, rate, Percent(shares.read),
                            Percent(shares.dot8), Percent(shares.dot16), Percent(shares.fma));
}

}  // namespace

ReadBandwidth ReadBandwidthOf(const EngineBenchReport& report) {
  const double probe = report.probe.read_bytes_per_second;
  if (report.read_rates.empty()) return {probe, probe};
  const Spread spread = SpreadOf(report.read_rates);
  return {spread.median, std::max(spread.max, probe)};
}

double BytesOf(const EngineBenchReport& report, const BenchPoint& point) {
  return report.cost.known ? WorkOf(report, point).bytes : 0;
}

Shares SharesOf(const EngineBenchReport& report, const BenchPoint& point,
                const ReadBandwidth& read) {
  if (!report.cost.known || point.seconds.empty()) return {};
  const double seconds = SpreadOf(point.seconds).median;
  const Work work = WorkOf(report, point);
  const MachineProbe& probe = report.probe;
  Shares shares;
  shares.read = SafeShare(work.bytes, seconds, read.median);
  shares.read_of_best = SafeShare(work.bytes, seconds, read.best);
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
  const ReadBandwidth read = ReadBandwidthOf(report);
  for (const BenchPoint& point : report.points) text += PointText(report, point, read);
  return text + fmt::format(
                    "Memory gave {:.1f} GB/s, {}; {:.1f} at best.\n"
                    "GB/s: bytes of weights, keys and values by time; read is its share of that "
                    "median.\n"
                    "The other shares are of the probe. All are of the median sample.\n",
                    read.median * 1e-9,
                    report.read_rates.empty()
                        ? std::string("the probe's best round")
                        : fmt::format("the median of {} readings between the samples",
                                      report.read_rates.size()),
                    read.best * 1e-9);
}

std::string BenchCsv(const EngineBenchReport& report) {
  const ReadBandwidth read = ReadBandwidthOf(report);
  std::string text;
  for (const auto& [name, value] : Description(report)) text += "# " + name + ": " + value + "\n";
  text +=
      "kind,prompt,context,batch,sample,tokens,seconds,tokens_per_second,read_gb_per_s,"
      "read_share,read_share_of_best,int8_share,int16_share,fma_share\n";
  for (const BenchPoint& point : report.points) {
    const std::string head =
        fmt::format("{},{},{},{}", KindName(point.kind), point.prompt, point.context, point.batch);
    if (!point.skipped.empty()) text += "# skipped " + head + ": " + point.skipped + "\n";
    for (size_t i = 0; i < point.seconds.size(); ++i) {
      BenchPoint sample = point;
      sample.seconds = {point.seconds[i]};
      const Shares shares = SharesOf(report, sample, read);
      text += fmt::format("{},{},{},{:.6f},{:.3f},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f}\n", head, i,
                          point.tokens, point.seconds[i], point.TokensPerSecond(point.seconds[i]),
                          GigabytesText(BytesOf(report, point) / point.seconds[i]), shares.read,
                          shares.read_of_best, shares.dot8, shares.dot16, shares.fma);
    }
  }
  for (size_t i = 0; i < report.read_rates.size(); ++i) {
    text += fmt::format("memory,,,,{},,,,{},,,,,\n", i, GigabytesText(report.read_rates[i]));
  }
  return text;
}

std::string BenchJson(const EngineBenchReport& report) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : Description(report)) json["run"][name] = value;
  const ReadBandwidth read = ReadBandwidthOf(report);
  json["memory"] = {
      {"read_bytes_per_second", report.read_rates}, {"median", read.median}, {"best", read.best}};
  json["points"] = nlohmann::ordered_json::array();
  for (const BenchPoint& point : report.points) {
    nlohmann::ordered_json row = {{"kind", KindName(point.kind)},
                                  {"prompt", point.prompt},
                                  {"context", point.context},
                                  {"batch", point.batch},
                                  {"tokens", point.tokens}};
    if (point.skipped.empty()) {
      const Spread speed = SpeedOf(point);
      const Shares shares = SharesOf(report, point, read);
      row.update({{"seconds", point.seconds},
                  {"tokens_per_second", speed.median},
                  {"min", speed.min},
                  {"max", speed.max},
                  {"deviation", speed.deviation},
                  {"bytes", BytesOf(report, point)},
                  {"read_share", shares.read},
                  {"read_share_of_best", shares.read_of_best},
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
