// tensor/cpu_features.cc: cpuid through the compiler's own probe, which also asks the operating
// system whether it saves the wide registers.
#include "tensor/cpu_features.h"

#include <fmt/format.h>

#include "tensor/cpu/tables.h"

namespace plumb::tensor {

CpuFeatures DetectCpu() {
  CpuFeatures features;
#if defined(__x86_64__)
  features.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("f16c");
  features.avx512 = features.avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
  features.vbmi = features.avx512 && __builtin_cpu_supports("avx512vbmi");
  features.quick_subnormals = __builtin_cpu_is("amd");
#endif
  return features;
}

std::vector<const KernelTable*> AllKernels() {
  std::vector<const KernelTable*> tables;
#if defined(__x86_64__)
  const CpuFeatures features = DetectCpu();
  if (features.avx2) {
    tables.push_back(&ScalarKernels());
    tables.push_back(&Avx2Kernels());
  }
  if (features.avx512) {
    tables.push_back(&Avx512Kernels(!features.vbmi              ? F8Widening::kConversions
                                    : features.quick_subnormals ? F8Widening::kShifts
                                                                : F8Widening::kTables));
  }
#else
  tables.push_back(&ScalarKernels());
#endif
  return tables;
}

base::Result<const KernelTable*> SelectKernels(std::string_view name) {
  const std::vector<const KernelTable*> tables = AllKernels();
  if (tables.empty()) {
    return base::Unsupported("this processor lacks AVX2, FMA or F16C, which the kernels need");
  }
  if (name == "auto") return tables.back();
  for (const KernelTable* table : tables) {
    if (table->name == name) return table;
  }
  if (name == "avx2" || name == "avx512") {
    return base::Unsupported(
        fmt::format("this processor cannot run the {} kernels; use auto", name));
  }
  return base::InvalidArgument(
      "kernels",
      fmt::format("no kernels are called {}; choose auto, scalar, avx2 or avx512", name));
}

}  // namespace plumb::tensor
