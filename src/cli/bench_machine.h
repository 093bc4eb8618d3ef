// cli/bench_machine.h
// What a measurement must say about where it was taken, and what the machine reaches by itself: the
// yardstick of `plumb bench`. The loops are tensor/probe.h's; the time is taken here.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "tensor/probe.h"
#include "tensor/thread_pool.h"

namespace plumb::cli {

struct MachineDescription {
  std::string cpu;      // "AMD EPYC (family 25, model 17, stepping 1)"
  std::string flags;    // those of the vector instructions that any of our kernels could use
  uint32_t processors;  // that this process may use
  uint64_t memory_bytes = 0;
  std::string system;    // "Linux 6.1.0"
  std::string compiler;  // of this binary
  std::string load;      // load averages of 1, 5, 15 minutes when it was asked
};
// Fields that the system does not tell are "unknown" or 0.
MachineDescription DescribeMachine();

// Multiplications and additions count one operation each.
struct MachineProbe {
  double read_bytes_per_second = 0;  // all threads, from memory
  double fma_per_second = 0;         // f32 operations
  double dot8_per_second = 0;        // 8-bit integer operations
  double dot16_per_second = 0;       // 16-bit
  std::string fma_instructions, dot8_instructions, dot16_instructions;
};

struct ProbeEffort {
  uint64_t read_bytes = uint64_t{512} << 20;  // a multiple of kProbeReadStep, beyond any cache
  base::Duration each = base::Milliseconds(400);
};

// The best round of several, of each loop, on all threads of the pool. kOverloaded: no memory.
base::Result<MachineProbe> ProbeMachine(const tensor::ProbeTable& table, tensor::ThreadPool& pool,
                                        const base::Clock& clock, const ProbeEffort& effort = {});

}  // namespace plumb::cli
