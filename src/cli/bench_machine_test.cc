// cli/bench_machine_test.cc
// The machine says something of itself, and the probe's rates follow from a clock.
#include "cli/bench_machine.h"

#include <gtest/gtest.h>

#include "tensor/cpu_features.h"

namespace plumb::cli {
namespace {

TEST(DescribeMachine, NamesWhatThisMachineHas) {
  const MachineDescription machine = DescribeMachine();
  EXPECT_NE(machine.cpu, "");
  EXPECT_GE(machine.processors, 1u);
  EXPECT_GT(machine.memory_bytes, 1u << 20);
  EXPECT_EQ(machine.load.find('\n'), std::string::npos);
#if defined(__x86_64__)
  EXPECT_EQ(machine.flags.find("avx2") != std::string::npos, __builtin_cpu_supports("avx2") != 0);
#endif
}

TEST(ProbeMachine, MeasuresEveryLoopOnAllThreads) {
  tensor::ThreadPool pool({.threads = 2});
  const base::SystemClock clock;
  for (const tensor::KernelTable* kernels : tensor::AllKernels()) {
    const auto table = tensor::SelectProbe(kernels->name);
    ASSERT_TRUE(table.ok());
    const auto read = ReadProbe::Create(**table, pool, clock, (5u << 20) + 512);
    ASSERT_TRUE(read.ok()) << read.status().message();
    const MachineProbe probe = ProbeMachine(**table, pool, *read, clock, base::Milliseconds(1));
    // Any machine with these instructions does more.
    EXPECT_GT(probe.read_bytes_per_second, 1e6);
    EXPECT_GT(probe.fma_per_second, 1e6);
    EXPECT_GT(probe.dot8_per_second, 1e6);
    EXPECT_GT(probe.dot16_per_second, 1e6);
    EXPECT_NE(probe.dot8_instructions, "");
  }
}

// A clock that stands still must not make it run forever.
TEST(ProbeMachine, EndsWithoutTime) {
  tensor::ThreadPool pool({.threads = 1});
  const base::ManualClock clock;
  uint32_t calls = 0;
  static uint32_t* counted = nullptr;
  counted = &calls;
  tensor::ProbeLoop loop{"", 1, [](uint64_t turns) {
                           ++*counted;
                           return turns;
                         }};
  const tensor::ProbeTable table{
      "", loop, loop, loop,
      [](const std::byte*, uint64_t size) -> uint64_t { return size / 8 * 0x0101010101010101; }};
  const auto read = ReadProbe::Create(table, pool, clock, 512);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ProbeMachine(table, pool, *read, clock);
  EXPECT_GT(calls, 3u);
}

TEST(ReadProbe, IsTheBytesOfAllPassesByTheirTime) {
  tensor::ThreadPool pool({.threads = 1});
  static base::ManualClock* clock = nullptr;
  base::ManualClock manual;
  clock = &manual;
  const tensor::ProbeLoop none{"", 1, [](uint64_t turns) { return turns; }};
  const tensor::ProbeTable table{
      "", none, none, none, [](const std::byte* data, uint64_t size) -> uint64_t {
        clock->Advance(base::Milliseconds(250));
        return data[size - 1] == std::byte{1} ? size / 8 * 0x0101010101010101 : 0;
      }};
  const auto read = ReadProbe::Create(table, pool, manual, 1024);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_DOUBLE_EQ(read->Rate(1), 4096);
  EXPECT_DOUBLE_EQ(read->Rate(2), 4096);
}

}  // namespace
}  // namespace plumb::cli
