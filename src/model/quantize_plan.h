// model/quantize_plan.h
// Which stored type each tensor of a model gets in a quantised file: the mixtures that llama.cpp's
// file types stand for (facts from its llama-quant.cpp), so that our Q4_K_M is what people expect.
// Read next: model/quantize.h, which carries a plan out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"
#include "tensor/dtype.h"

namespace plumb::model {

// What `--type` names; the numbers are those of the key general.file_type.
enum class FileType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 7,
  kQ5_0 = 8,
  kQ5_1 = 9,
  kQ4_K_M = 15,
  kQ5_K_M = 17,
  kQ6_K = 18,
  kBF16 = 32,
};
// "Q4_K_M"; case does not matter. Nothing for others.
std::optional<FileType> FileTypeFromName(std::string_view name);
std::string_view Name(FileType type);
// All names, in the order of size: "F32, F16, ...".
std::string_view FileTypeNames();

struct PlannedTensor {
  const GgufTensor* source = nullptr;
  uint32_t type = 0;   // ggml's number; the source's own when the bytes are copied
  uint64_t bytes = 0;  // in the new file
  // The type of the mixture, when the tensor's rows are no whole number of its blocks and `type`
  // takes its place.
  std::optional<tensor::DType> instead_of;

  bool copied() const { return type == source->type; }
};

struct QuantizePlan {
  FileType type = FileType::kF32;
  std::vector<PlannedTensor> tensors;  // in the source's order
  uint64_t data_bytes = 0;             // of all tensors, unpadded
  // The first tensor that is quantised already and would be rounded a second time; null when none.
  const GgufTensor* requantized = nullptr;
};

// Borrows the checkpoint. Vectors, norms, expert gates and whatever is no weight stay as they are
// (as F32 for kF32). kUnsupported: a tensor of a type that cannot be read here, one part of a
// file that was split, or DeepSeek-V4.1; field() names the tensor or the key that says so.
base::Result<QuantizePlan> PlanQuantize(const Checkpoint& source, FileType type);

}  // namespace plumb::model
