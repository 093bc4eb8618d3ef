// tensor/probe_test.cc
// The probe's loops do as many multiply-adds as they claim, and read every byte: their results say
// so. On every target that runs here.
#include "tensor/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/random.h"
#include "tensor/cpu_features.h"

namespace plumb::tensor {
namespace {

std::vector<const ProbeTable*> Tables() {
  std::vector<const ProbeTable*> tables;
  if (const auto table = SelectProbe("avx2"); table.ok()) tables.push_back(*table);
  if (const auto table = SelectProbe("avx512"); table.ok()) tables.push_back(*table);
  return tables;
}

TEST(Probe, LoopsDoAsManyMultiplyAddsAsTheyClaim) {
  for (const ProbeTable* table : Tables()) {
    for (const ProbeLoop* loop : {&table->fma, &table->dot8, &table->dot16}) {
      for (const uint64_t turns : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, kProbeTurnsMax}) {
        EXPECT_EQ(loop->run(turns), turns * loop->multiply_adds_per_turn) << loop->instructions;
      }
    }
  }
}

TEST(Probe, ReadSumsEveryWordOnce) {
  base::Rng rng(7);
  for (const uint64_t steps : {0, 1, 3, 64}) {
    std::vector<uint64_t> words(steps * kProbeReadStep / 8);
    uint64_t sum = 0;
    for (uint64_t& word : words) sum += word = rng.Next();
    for (const ProbeTable* table : Tables()) {
      EXPECT_EQ(table->read(reinterpret_cast<const std::byte*>(words.data()), words.size() * 8),
                sum)
          << table->name << " " << steps;
    }
  }
}

TEST(Probe, IsTheOneWhoseInstructionsTheKernelsUse) {
  for (const KernelTable* kernels : AllKernels()) {
    const auto probe = SelectProbe(kernels->name);
    ASSERT_TRUE(probe.ok()) << kernels->name;
    if (kernels->name != "scalar") {
      EXPECT_EQ((*probe)->name, kernels->name);
    }
  }
}

TEST(Probe, IsRefusedWhereTheProcessorLacksTheInstructions) {
  const CpuFeatures features = DetectCpu();
  EXPECT_EQ(SelectProbe("avx512").ok(), features.avx512);
  if (!features.avx512) {
    EXPECT_EQ(SelectProbe("avx512").status().code(), base::Code::kUnsupported);
  }
  EXPECT_EQ(SelectProbe("avx2").ok(), features.avx2);
}

}  // namespace
}  // namespace plumb::tensor
