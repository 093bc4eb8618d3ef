// tensor/numerics.cc: the id with the mark of a library that rounds otherwise. Asked once a model
// is loaded, so nothing is kept.
#include "tensor/numerics.h"

#include <fmt/format.h>

#include "tensor/cpu_features.h"
#include "tensor/exact_math_probe.h"

namespace plumb::tensor {

std::string NumericsWith(std::string_view id, uint64_t fingerprint) {
  if (fingerprint == kExactMathFingerprint) return std::string(id);
  return fmt::format("{}-m{:016x}", id, fingerprint);
}

std::string NumericsOfProcess(std::string_view id) {
  // Without FMA the probe's own instructions are missing, and nothing is computed anyway.
  if (AllKernels().empty()) return std::string(id);
  return NumericsWith(id, ExactMathFingerprint());
}

}  // namespace plumb::tensor
