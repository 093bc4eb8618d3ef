// model/weight_reader.h
// Takes tensors out of a Gguf by name for a family's loader. A family lists what it expects; the
// file must hold exactly that, since a weight left out of the arithmetic gives wrong answers
// without an error. Matrices are packed, small vectors expanded to f32.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/gguf.h"
#include "model/load.h"
#include "tensor/packed_matrix.h"
#include "tensor/weight_arena.h"

namespace plumb::model {

// A tensor that a family expects, [outputs, inputs]; a vector has one output.
struct WeightSpec {
  std::string name;
  uint64_t outputs = 1;
  uint64_t inputs = 0;
  bool optional = false;
};

// Whether the file holds these tensors and no other, before any is read. kCorrupt: one is missing
// or has another shape; kUnsupported: a data type without kernels, or a tensor that is not listed.
// field() and message name the tensor.
base::Status CheckWeights(const Gguf& gguf, std::span<const WeightSpec> specs,
                          std::string_view family);

// One loading; borrows its arguments. Matrices lie in `arena`, which outlives them. Thread: one at
// a time.
class WeightReader {
 public:
  WeightReader(const Gguf& gguf, const LoadOptions& options, tensor::WeightArena& arena);

  // The tensor itself. kCorrupt, kUnsupported: as CheckWeights.
  base::Result<const GgufTensor*> Raw(const std::string& name, uint64_t outputs, uint64_t inputs);
  // Also kCorrupt: a scale or value that is not finite; kOverloaded: out of memory.
  base::Result<tensor::PackedMatrix> Matrix(const std::string& name, uint64_t outputs,
                                            uint64_t inputs);
  // Also kCorrupt: a value that is not finite.
  base::Result<std::vector<float>> Vector(const std::string& name, uint64_t size);
  // Empty when the file has no such tensor.
  base::Result<std::vector<float>> VectorIfAny(const std::string& name, uint64_t size);

  uint64_t resident_bytes() const { return resident_bytes_; }  // of matrices and vectors

 private:
  void Took(const GgufTensor& tensor, uint64_t resident_bytes);

  const Gguf& gguf_;
  const LoadOptions& options_;
  tensor::WeightArena& arena_;
  std::set<std::string_view> taken_;
  LoadProgress progress_;
  uint64_t resident_bytes_ = 0;
};

}  // namespace plumb::model
