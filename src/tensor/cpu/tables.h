// tensor/cpu/tables.h: the tables that exist; cpu_features.cc chooses among them. Calling a
// function of a table on a processor without its instructions is undefined; ask DetectCpu first.
#pragma once

#include "tensor/kernel_table.h"

namespace plumb::tensor {

const KernelTable& ScalarKernels();  // tensor/ref
const KernelTable& Avx2Kernels();    // x86-64 only
// x86-64 only. How weights of E4M3 become f32, all but the first with permutations of bytes, which
// younger processors have (VBMI); the last where subnormal factors cost nothing.
enum class F8Widening : uint8_t { kConversions, kTables, kShifts };
const KernelTable& Avx512Kernels(F8Widening widening);

}  // namespace plumb::tensor
