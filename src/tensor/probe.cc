// tensor/probe.cc
// Chooses the probe's loops by what cpuid says, as cpu_features.cc does for kernels. The loops:
// probe-inl.h, compiled by probe_avx2.cc and probe_avx512.cc.
#include "tensor/probe.h"

#include "tensor/cpu_features.h"

namespace plumb::tensor {

base::Result<const ProbeTable*> SelectProbe(std::string_view kernels) {
#if defined(__x86_64__)
  const CpuFeatures features = DetectCpu();
  if (features.avx512 && kernels != "avx2") return &Avx512Probe();
  if (features.avx2 && kernels != "avx512") return &Avx2Probe();
#endif
  return base::Unsupported("there are no probe loops for this processor and these kernels");
}

}  // namespace plumb::tensor
