// cli/bench_machine.cc
// /proc and the probe's rounds, behind cli/bench_machine.h.
#include "cli/bench_machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>

#include "base/check.h"
#include "base/thread.h"
#include "cli/format.h"
#include "cli/line_reader.h"
#include "tensor/aligned_buffer.h"

namespace plumb::cli {
namespace {

constexpr uint64_t kLineBytesMax = 1u << 16;
constexpr uint32_t kLinesMax = 64;  // of a file of the system; the first processor's are enough
constexpr uint32_t kRoundsMin = 3;
constexpr uint32_t kRoundsMax = 1000;
constexpr uint32_t kItemsPerThread = 8;  // of a round, so that threads end together
constexpr uint64_t kSliceBytes = 4u << 20;
constexpr std::string_view kUnknown = "unknown";
constexpr std::array<std::string_view, 12> kFlags = {
    "avx2",     "fma",      "f16c",        "avx_vnni",    "avx512f",  "avx512bw",
    "avx512dq", "avx512vl", "avx512_bf16", "avx512_vnni", "amx_int8", "amx_bf16"};

// The text after "key : " in the first line of that key.
std::string Field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t colon = line.find(':');
    if (line.starts_with(key) && colon != line.npos &&
        line.substr(key.size(), colon - key.size()).find_first_not_of(" \t") == line.npos) {
      const size_t begin = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
      return Printable(line.substr(begin), 4000);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::string(kUnknown);
}

std::string KnownFlags(const std::string& flags) {
  const std::string padded = " " + flags + " ";
  std::string known;
  for (const std::string_view flag : kFlags) {
    if (padded.find(fmt::format(" {} ", flag)) == padded.npos) continue;
    known += (known.empty() ? "" : " ") + std::string(flag);
  }
  return known.empty() ? std::string(kUnknown) : known;
}

// The first lines of a file of the system, whose size nobody knows beforehand.
std::string FileText(const char* path) {
  const auto reader = LineReader::Open(path, kLineBytesMax);
  std::string text;
  for (uint32_t i = 0; i < kLinesMax && reader.ok(); ++i) {
    const auto line = (*reader)->Next();
    if (!line.ok() || !line->has_value()) break;
    text += (*line)->text + "\n";
  }
  return text;
}

// Calls round() until the time is over and returns the seconds of the fastest.
template <typename Round>
double FastestRound(const base::Clock& clock, base::Duration each, const Round& round) {
  const base::Instant begin = clock.Now();
  double fastest = 0;
  for (uint32_t i = 0; i < kRoundsMax; ++i) {
    const base::Instant start = clock.Now();
    round();
    const base::Instant end = clock.Now();
    const double seconds = std::max((end - start).seconds(), 1e-9);
    fastest = i == 0 ? seconds : std::min(fastest, seconds);
    if (i + 1 >= kRoundsMin && end - begin >= each) break;
  }
  return fastest;
}

double LoopRate(const tensor::ProbeLoop& loop, tensor::ThreadPool& pool, const base::Clock& clock,
                base::Duration each) {
  const uint32_t items = pool.threads() * kItemsPerThread;
  const uint64_t wanted = items * tensor::kProbeTurnsMax * loop.multiply_adds_per_turn;
  const double seconds = FastestRound(clock, each, [&] {
    std::atomic<uint64_t> done = 0;
    pool.ParallelFor(items, [&](uint32_t) { done += loop.run(tensor::kProbeTurnsMax); });
    CHECK(done == wanted) << "the probe's loop did not compute what it counts";
  });
  return 2.0 * static_cast<double>(wanted) / seconds;
}

base::Result<double> ReadRate(const tensor::ProbeTable& table, tensor::ThreadPool& pool,
                              const base::Clock& clock, const ProbeEffort& effort) {
  CHECK(effort.read_bytes > 0 && effort.read_bytes % tensor::kProbeReadStep == 0);
  ASSIGN_OR_RETURN(tensor::AlignedBuffer buffer,
                   tensor::AlignedBuffer::Allocate(effort.read_bytes));
  const auto slices = static_cast<uint32_t>((buffer.size() + kSliceBytes - 1) / kSliceBytes);
  const auto size_of = [&](uint32_t slice) {
    return std::min(kSliceBytes, buffer.size() - slice * kSliceBytes);
  };
  // Written first: pages that nobody wrote are all one page of zeros.
  pool.ParallelFor(slices, [&](uint32_t slice) {
    std::fill_n(buffer.data() + slice * kSliceBytes, size_of(slice), std::byte{1});
  });
  const uint64_t wanted = buffer.size() / 8 * 0x0101010101010101;
  const double seconds = FastestRound(clock, effort.each, [&] {
    std::atomic<uint64_t> sum = 0;
    pool.ParallelFor(slices, [&](uint32_t slice) {
      sum += table.read(buffer.data() + slice * kSliceBytes, size_of(slice));
    });
    CHECK(sum == wanted) << "the probe did not read what it counts";
  });
  return static_cast<double>(buffer.size()) / seconds;
}

}  // namespace

MachineDescription DescribeMachine() {
  MachineDescription machine;
  const std::string cpu = FileText("/proc/cpuinfo");
  machine.cpu = fmt::format("{} (family {}, model {}, stepping {})", Field(cpu, "model name"),
                            Field(cpu, "cpu family"), Field(cpu, "model"), Field(cpu, "stepping"));
  machine.flags = KnownFlags(Field(cpu, "flags"));
  machine.processors = base::UsableProcessors();
  const std::string memory = Field(FileText("/proc/meminfo"), "MemTotal");
  uint64_t kilobytes = 0;
  std::from_chars(memory.data(), memory.data() + memory.size(), kilobytes);
  machine.memory_bytes = kilobytes * 1024;
  utsname name{};
  machine.system =
      uname(&name) == 0 ? fmt::format("{} {}", name.sysname, name.release) : std::string(kUnknown);
#if defined(__clang__)
  machine.compiler = "clang " __clang_version__;
#else
  machine.compiler = "gcc " __VERSION__;
#endif
  const std::string load = FileText("/proc/loadavg");
  size_t end = 0;
  for (int i = 0; i < 3 && end != load.npos; ++i) end = load.find(' ', end == 0 ? 0 : end + 1);
  machine.load = load.empty() ? std::string(kUnknown) : Printable(load.substr(0, end), 100);
  return machine;
}

base::Result<MachineProbe> ProbeMachine(const tensor::ProbeTable& table, tensor::ThreadPool& pool,
                                        const base::Clock& clock, const ProbeEffort& effort) {
  MachineProbe probe;
  ASSIGN_OR_RETURN(probe.read_bytes_per_second, ReadRate(table, pool, clock, effort));
  probe.fma_per_second = LoopRate(table.fma, pool, clock, effort.each);
  probe.dot8_per_second = LoopRate(table.dot8, pool, clock, effort.each);
  probe.dot16_per_second = LoopRate(table.dot16, pool, clock, effort.each);
  probe.fma_instructions = table.fma.instructions;
  probe.dot8_instructions = table.dot8.instructions;
  probe.dot16_instructions = table.dot16.instructions;
  return probe;
}

}  // namespace plumb::cli
