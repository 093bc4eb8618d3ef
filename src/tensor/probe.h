// tensor/probe.h
// What the machine itself reaches, to hold kernels against: loops of one instruction mix each,
// without memory traffic, and one that only reads memory. They count and compute; whoever calls
// them measures time (cli/bench_machine.h), since this module knows none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace plumb::tensor {

// `run(turns)` does turns * multiply_adds_per_turn multiply-adds, all factors 1, spread over
// accumulators enough to hide the latency, and returns the sum of them all: the number of
// multiply-adds that were really done, as long as turns <= kProbeTurnsMax.
struct ProbeLoop {
  std::string_view instructions;  // "vpmaddubsw + vpmaddwd + vpaddd, 256 bits"
  uint64_t multiply_adds_per_turn = 0;
  uint64_t (*run)(uint64_t turns) = nullptr;
};
constexpr uint64_t kProbeTurnsMax = 1u << 20;

struct ProbeTable {
  std::string_view name;  // of the kernels that use these instructions: "avx2", "avx512"
  ProbeLoop fma;          // f32
  ProbeLoop dot8;         // 8-bit integers into 32-bit sums
  ProbeLoop dot16;        // 16-bit integers into 32-bit sums
  // Reads every byte once, in order; the sum of its 64-bit words (little-endian, modulo 2^64). The
  // size is a multiple of kProbeReadStep.
  uint64_t (*read)(const std::byte* data, uint64_t size) = nullptr;
};
constexpr uint64_t kProbeReadStep = 512;

// The loops for the kernel table of this name; for "scalar" those of the fastest table here, since
// the question is what the machine reaches. kUnsupported: this processor lacks the instructions.
base::Result<const ProbeTable*> SelectProbe(std::string_view kernels);

// ---- the targets; callable only where cpuid says so ----

const ProbeTable& Avx2Probe();
const ProbeTable& Avx512Probe();

}  // namespace plumb::tensor
