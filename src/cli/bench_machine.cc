// cli/bench_machine.cc
// /proc and the probe's rounds, behind cli/bench_machine.h.
#include "cli/bench_machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/thread.h"
#include "cli/format.h"
#include "cli/line_reader.h"

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

// Calls round() a few times at least, and until the time is over.
template <typename Round>
void ForRounds(const base::Clock& clock, base::Duration each, const Round& round) {
  const base::Instant begin = clock.Now();
  for (uint32_t i = 0; i < kRoundsMax; ++i) {
    round();
    if (i + 1 >= kRoundsMin && clock.Now() - begin >= each) break;
  }
}

// Of the fastest round.
double LoopRate(const tensor::ProbeLoop& loop, tensor::ThreadPool& pool, const base::Clock& clock,
                base::Duration each) {
  const uint32_t items = pool.threads() * kItemsPerThread;
  const uint64_t wanted = items * tensor::kProbeTurnsMax * loop.multiply_adds_per_turn;
  double rate = 0;
  ForRounds(clock, each, [&] {
    const base::Instant start = clock.Now();
    std::atomic<uint64_t> done = 0;
    pool.ParallelFor(items, [&](uint32_t) { done += loop.run(tensor::kProbeTurnsMax); });
    CHECK(done == wanted) << "the probe's loop did not compute what it counts";
    const double seconds = std::max((clock.Now() - start).seconds(), 1e-9);
    rate = std::max(rate, 2.0 * static_cast<double>(wanted) / seconds);
  });
  return rate;
}

uint32_t SlicesOf(const tensor::AlignedBuffer& buffer) {
  return static_cast<uint32_t>((buffer.size() + kSliceBytes - 1) / kSliceBytes);
}
uint64_t SliceSize(const tensor::AlignedBuffer& buffer, uint32_t slice) {
  return std::min(kSliceBytes, buffer.size() - slice * kSliceBytes);
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

base::Result<ReadProbe> ReadProbe::Create(const tensor::ProbeTable& table, tensor::ThreadPool& pool,
                                          const base::Clock& clock, uint64_t bytes) {
  CHECK(bytes > 0 && bytes % tensor::kProbeReadStep == 0);
  ASSIGN_OR_RETURN(tensor::AlignedBuffer buffer, tensor::AlignedBuffer::Allocate(bytes));
  return ReadProbe(table, pool, clock, std::move(buffer));
}

// Written here: pages that nobody wrote are all one page of zeros.
ReadProbe::ReadProbe(const tensor::ProbeTable& table, tensor::ThreadPool& pool,
                     const base::Clock& clock, tensor::AlignedBuffer buffer)
    : table_(&table), pool_(&pool), clock_(&clock), buffer_(std::move(buffer)) {
  pool.ParallelFor(SlicesOf(buffer_), [&](uint32_t slice) {
    std::fill_n(buffer_.data() + slice * kSliceBytes, SliceSize(buffer_, slice), std::byte{1});
  });
}

double ReadProbe::Rate(uint32_t passes) const {
  CHECK(passes >= 1);
  const base::Instant start = clock_->Now();
  for (uint32_t pass = 0; pass < passes; ++pass) Pass();
  const double seconds = std::max((clock_->Now() - start).seconds(), 1e-9);
  return static_cast<double>(buffer_.size()) * passes / seconds;
}

void ReadProbe::Pass() const {
  std::atomic<uint64_t> sum = 0;
  pool_->ParallelFor(SlicesOf(buffer_), [&](uint32_t slice) {
    sum += table_->read(buffer_.data() + slice * kSliceBytes, SliceSize(buffer_, slice));
  });
  CHECK(sum == buffer_.size() / 8 * 0x0101010101010101) << "the probe did not read what it counts";
}

MachineProbe ProbeMachine(const tensor::ProbeTable& table, tensor::ThreadPool& pool,
                          const ReadProbe& read, const base::Clock& clock, base::Duration each) {
  MachineProbe probe;
  ForRounds(clock, each, [&] {
    probe.read_bytes_per_second = std::max(probe.read_bytes_per_second, read.Rate(1));
  });
  probe.fma_per_second = LoopRate(table.fma, pool, clock, each);
  probe.dot8_per_second = LoopRate(table.dot8, pool, clock, each);
  probe.dot16_per_second = LoopRate(table.dot16, pool, clock, each);
  probe.fma_instructions = table.fma.instructions;
  probe.dot8_instructions = table.dot8.instructions;
  probe.dot16_instructions = table.dot16.instructions;
  return probe;
}

}  // namespace plumb::cli
