// tensor/dtype.h
// Element types of stored weights: plain floats and the block formats of GGUF. A block holds a
// fixed number of consecutive inputs of one row, so a row is a whole number of blocks. What the
// bytes mean: tensor/quant_group.h; docs/numerics.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace plumb::tensor {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};
constexpr uint32_t kDTypes = 11;

struct DTypeTraits {
  std::string_view name;  // as llama.cpp and Hugging Face spell it: "Q4_K"
  uint32_t block_inputs;  // 1 for floats, 32, or 256
  uint32_t block_bytes;
  bool quantized;
};
const DTypeTraits& Traits(DType dtype);
inline std::string_view Name(DType dtype) { return Traits(dtype).name; }
inline bool IsQuantized(DType dtype) { return Traits(dtype).quantized; }

// The type with this number in a GGUF tensor header (ggml_type), or nothing if we do not read it.
std::optional<DType> DTypeFromGguf(uint32_t ggml_type);

// Bytes of a row of `inputs` elements, and of `rows` such rows.
// kInvalidArgument: inputs is 0 or no multiple of block_inputs, or the size does not fit 2^62.
base::Result<uint64_t> RowBytes(DType dtype, uint64_t inputs);
base::Result<uint64_t> MatrixBytes(DType dtype, uint64_t rows, uint64_t inputs);

}  // namespace plumb::tensor
