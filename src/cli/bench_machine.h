// cli/bench_machine.h
// What a measurement must say about where it was taken, and what the machine reaches by itself: the
// yardstick of `plumb bench`. The loops are tensor/probe.h's; the time is taken here.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "tensor/aligned_buffer.h"
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

// Memory that is only read, to see what it gives at this moment: on shared machines that changes
// from second to second. Thread: the pool's caller. The table, pool and clock are borrowed.
class ReadProbe {
 public:
  static constexpr uint64_t kBytes = uint64_t{512} << 20;  // beyond any cache

  // `bytes`: a multiple of kProbeReadStep. kOverloaded: no memory.
  static base::Result<ReadProbe> Create(const tensor::ProbeTable& table, tensor::ThreadPool& pool,
                                        const base::Clock& clock, uint64_t bytes = kBytes);

  // Bytes per second of `passes` (>= 1) passes over the memory, one after the other, on all
  // threads.
  double Rate(uint32_t passes) const;

 private:
  ReadProbe(const tensor::ProbeTable& table, tensor::ThreadPool& pool, const base::Clock& clock,
            tensor::AlignedBuffer buffer);
  void Pass() const;

  const tensor::ProbeTable* table_;
  tensor::ThreadPool* pool_;
  const base::Clock* clock_;
  tensor::AlignedBuffer buffer_;
};

// The best round of several, of each loop, on all threads of the pool; `each`: the time for one.
MachineProbe ProbeMachine(const tensor::ProbeTable& table, tensor::ThreadPool& pool,
                          const ReadProbe& read, const base::Clock& clock,
                          base::Duration each = base::Milliseconds(400));

}  // namespace plumb::cli
