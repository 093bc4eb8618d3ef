// tensor/cpu_features.h
// Which kernel table this processor runs: asked once at start (cpuid and what the system saves of
// the registers), or forced by name for tests. Results do not depend on the choice, only speed
// does.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/kernel_table.h"

namespace plumb::tensor {

struct CpuFeatures {
  bool avx2 = false;    // with FMA and F16C
  bool avx512 = false;  // F, BW, VL, DQ and VNNI
  bool vbmi = false;    // besides
  // Products with subnormal factors are as fast as others. So on AMD's since Zen; Intel's take some
  // 150 cycles for one.
  bool quick_subnormals = false;
};
CpuFeatures DetectCpu();

// "auto" picks the fastest; or "scalar", "avx2", "avx512".
// kInvalidArgument (field "kernels"): no such name; kUnsupported: this processor lacks it. On x86
// even "scalar" needs AVX2 and FMA, since SLEEF's deterministic functions do.
base::Result<const KernelTable*> SelectKernels(std::string_view name);

// Every table that runs here, the scalar judge first; for tests.
std::vector<const KernelTable*> AllKernels();

}  // namespace plumb::tensor
