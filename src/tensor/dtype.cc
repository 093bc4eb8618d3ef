// tensor/dtype.cc: the table of types and checked sizes. Block sizes: GGUF specification, ggml
// types.
#include "tensor/dtype.h"

#include <fmt/format.h>

#include <array>

#include "base/bytes.h"
#include "base/check.h"

namespace plumb::tensor {
namespace {

constexpr std::array<DTypeTraits, kDTypes> kTraits = {{
    {"F32", 1, 4, false},
    {"F16", 1, 2, false},
    {"BF16", 1, 2, false},
    {"Q4_0", 32, 18, true},
    {"Q4_1", 32, 20, true},
    {"Q5_0", 32, 22, true},
    {"Q5_1", 32, 24, true},
    {"Q8_0", 32, 34, true},
    {"Q4_K", 256, 144, true},
    {"Q5_K", 256, 176, true},
    {"Q6_K", 256, 210, true},
}};

constexpr uint64_t kBytesMax = uint64_t{1} << 62;

base::Status TooLarge(DType dtype, uint64_t rows, uint64_t inputs) {
  return base::InvalidArgument(
      "shape", fmt::format("a {} matrix of {} x {} is too large", Name(dtype), rows, inputs));
}

}  // namespace

const DTypeTraits& Traits(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  CHECK(index < kTraits.size()) << index;
  return kTraits[index];
}

std::optional<DType> DTypeFromGguf(uint32_t ggml_type) {
  switch (ggml_type) {
    case 0:
      return DType::kF32;
    case 1:
      return DType::kF16;
    case 2:
      return DType::kQ4_0;
    case 3:
      return DType::kQ4_1;
    case 6:
      return DType::kQ5_0;
    case 7:
      return DType::kQ5_1;
    case 8:
      return DType::kQ8_0;
    case 12:
      return DType::kQ4_K;
    case 13:
      return DType::kQ5_K;
    case 14:
      return DType::kQ6_K;
    case 30:
      return DType::kBF16;
    default:
      return std::nullopt;
  }
}

base::Result<uint64_t> RowBytes(DType dtype, uint64_t inputs) {
  return MatrixBytes(dtype, 1, inputs);
}

base::Result<uint64_t> MatrixBytes(DType dtype, uint64_t rows, uint64_t inputs) {
  const DTypeTraits& traits = Traits(dtype);
  if (inputs == 0 || inputs % traits.block_inputs != 0) {
    return base::InvalidArgument(
        "shape", fmt::format("a row of {} elements is no whole number of {} blocks of {}", inputs,
                             traits.name, traits.block_inputs));
  }
  const auto row = base::CheckedMul(inputs / traits.block_inputs, traits.block_bytes);
  if (!row) return TooLarge(dtype, rows, inputs);
  const auto bytes = base::CheckedMul(*row, rows);
  if (!bytes || *bytes > kBytesMax) return TooLarge(dtype, rows, inputs);
  return *bytes;
}

}  // namespace plumb::tensor
