// tensor/cpu_features_test.cc: tables are chosen by name and by what the processor has.
// A machine without AVX-512 takes the branch that refuses it.
#include "tensor/cpu_features.h"

#include <gtest/gtest.h>

namespace plumb::tensor {
namespace {

TEST(CpuFeatures, TheJudgeComesFirstAndAutoPicksTheLast) {
  const auto tables = AllKernels();
  ASSERT_FALSE(tables.empty()) << "no AVX2 here; the tests of tensor need it on x86";
  EXPECT_EQ(tables.front()->name, "scalar");
  EXPECT_EQ(*SelectKernels("auto"), tables.back());
  EXPECT_EQ(*SelectKernels("scalar"), tables.front());
  for (const KernelTable* table : tables) EXPECT_EQ(*SelectKernels(table->name), table);
}

TEST(CpuFeatures, UnknownNamesAndMissingTargetsAreRefused) {
  EXPECT_EQ(SelectKernels("avx1024").status().code(), base::Code::kInvalidArgument);
  EXPECT_EQ(SelectKernels("").status().field(), "kernels");
  const auto avx512 = SelectKernels("avx512");
  EXPECT_EQ(avx512.ok(), DetectCpu().avx512);
  if (!avx512.ok()) {
    EXPECT_EQ(avx512.status().code(), base::Code::kUnsupported);
  }
}

}  // namespace
}  // namespace plumb::tensor
