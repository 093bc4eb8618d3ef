// cli/version_command.cc
// Compile-time facts and cpuid, behind cli/version_command.h.
#include "cli/version_command.h"

#include <fmt/format.h>

#include "base/thread.h"
#include "tensor/cpu_features.h"
#include "tensor/numerics.h"

namespace plumb::cli {
namespace {

std::string VectorFeatures() {
  std::string features;
#if defined(__x86_64__)
  const auto add = [&](bool there, std::string_view name) {
    if (there) features += (features.empty() ? "" : " ") + std::string(name);
  };
  add(__builtin_cpu_supports("avx2") != 0, "avx2");
  add(__builtin_cpu_supports("fma") != 0, "fma");
  add(__builtin_cpu_supports("avx512f") != 0, "avx512f");
  add(__builtin_cpu_supports("avx512bw") != 0, "avx512bw");
  add(__builtin_cpu_supports("avx512vnni") != 0, "avx512vnni");
#endif
  return features.empty() ? "none" : features;
}

// What --kernels auto takes here.
std::string_view KernelsName() {
  const auto kernels = tensor::SelectKernels("auto");
  return kernels.ok() ? (*kernels)->name : "none: this processor lacks AVX2 with FMA";
}

}  // namespace

std::string VersionText() {
  return fmt::format(
      "plumb {}\nnumerics   {}\ncompiler   {}\nvectors    {}\nkernels    {}\nprocessors {}\n",
      kVersion, tensor::NumericsOfProcess(tensor::kNumericsId),
#if defined(__clang__)
      "clang " __clang_version__,
#else
      "gcc " __VERSION__,
#endif
      VectorFeatures(), KernelsName(), base::UsableProcessors());
}

}  // namespace plumb::cli
