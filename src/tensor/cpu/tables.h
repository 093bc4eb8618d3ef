// tensor/cpu/tables.h: the tables that exist; cpu_features.cc chooses among them. Calling a
// function of a table on a processor without its instructions is undefined; ask DetectCpu first.
#pragma once

#include "tensor/kernel_table.h"

namespace plumb::tensor {

const KernelTable& ScalarKernels();  // tensor/ref
const KernelTable& Avx2Kernels();    // x86-64 only
// x86-64 only. `vbmi`: with lookups of bytes, which younger processors have.
const KernelTable& Avx512Kernels(bool vbmi);

}  // namespace plumb::tensor
