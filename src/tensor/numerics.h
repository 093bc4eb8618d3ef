// tensor/numerics.h
// The version of the arithmetic and of the KV page format (docs/numerics.md). Two processes with
// equal ids compute equal bits; any change of a rounding or an order changes it. What is told to
// others is NumericsOfProcess, since the bits also depend on a library of the system.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plumb::tensor {

constexpr std::string_view kNumericsId = "p2";

// ExactMathFingerprint of the SLEEF that the ids stand for (3.5.1).
constexpr uint64_t kExactMathFingerprint = 0xad2d993add76ee81;

// `id` where this process's SLEEF gives the bits that it stands for; else followed by "-m" and the
// fingerprint of what it gives, so that pages and answers of the two are never taken for each
// other's. On a processor that cannot run any kernels: `id`. Thread: any.
std::string NumericsOfProcess(std::string_view id);
// The same for a fingerprint.
std::string NumericsWith(std::string_view id, uint64_t fingerprint);

}  // namespace plumb::tensor
