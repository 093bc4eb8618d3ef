// model/weight_reader.h
// Takes tensors out of a checkpoint by name for a family's loader. A family lists what it expects;
// the file must hold exactly that, since a weight left out of the arithmetic gives wrong answers
// without an error. Matrices are packed, small vectors expanded to f32.
#pragma once

#include <cstdint>
#include <list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/load.h"
#include "tensor/packed_matrix.h"
#include "tensor/weight_arena.h"

namespace plumb::model {

// A tensor that a family expects, [outputs, inputs]; a vector has one output. With experts it is a
// stack of so many of them, in the file's dims [inputs, outputs, experts].
struct WeightSpec {
  std::string name;
  uint64_t outputs = 1;
  uint64_t inputs = 0;
  bool optional = false;
  uint32_t experts = 0;  // 0 = one plain matrix
};

// Whether the file holds these tensors and no other, before any is read. kCorrupt: one is missing
// or has another shape; kUnsupported: a data type without kernels, or a tensor that is not listed.
// field() and message name the tensor.
base::Status CheckWeights(const Checkpoint& checkpoint, std::span<const WeightSpec> specs,
                          std::string_view family);

// Whether every value that kernels can read is finite, as loading insists on; tensors of other
// types are passed over. Reads all weights. kCorrupt: field() and message name the tensor;
// kOverloaded: out of memory.
base::Status CheckValues(const Checkpoint& checkpoint, tensor::ThreadPool& pool);

// One loading; borrows its arguments. Matrices lie in `arena`, which outlives them. Thread: one at
// a time.
class WeightReader {
 public:
  WeightReader(const Checkpoint& checkpoint, const LoadOptions& options,
               tensor::WeightArena& arena);

  // The tensor itself, with its bytes, for as long as the reader and the checkpoint live. kCorrupt,
  // kUnsupported: as CheckWeights; kOverloaded: out of memory.
  base::Result<const GgufTensor*> Raw(const std::string& name, uint64_t outputs, uint64_t inputs);
  // Also kCorrupt: a scale or value that is not finite; kOverloaded: out of memory.
  base::Result<tensor::PackedMatrix> Matrix(const std::string& name, uint64_t outputs,
                                            uint64_t inputs);
  // One matrix of a stack of `experts`; expert < experts (CHECK). Errors as Matrix.
  base::Result<tensor::PackedMatrix> ExpertMatrix(const std::string& name, uint32_t expert,
                                                  uint32_t experts, uint64_t outputs,
                                                  uint64_t inputs);
  // Also kCorrupt: a value that is not finite.
  base::Result<std::vector<float>> Vector(const std::string& name, uint64_t size);
  // Empty when the file has no such tensor.
  base::Result<std::vector<float>> VectorIfAny(const std::string& name, uint64_t size);

  uint64_t resident_bytes() const { return resident_bytes_; }  // of matrices and vectors

 private:
  struct Kept {
    GgufTensor tensor;
    tensor::AlignedBuffer memory;
  };
  base::Result<tensor::PackedMatrix> Pack(const GgufTensor& tensor, uint32_t part, uint64_t outputs,
                                          uint64_t inputs);
  void Took(const GgufTensor& tensor, uint32_t part, uint64_t stored_bytes,
            uint64_t resident_bytes);

  const Checkpoint& checkpoint_;
  const LoadOptions& options_;
  tensor::WeightArena& arena_;
  std::set<std::pair<std::string_view, uint32_t>> taken_;  // tensor and expert
  std::list<Kept> kept_;                                   // what Raw had to put together
  LoadProgress progress_;
  uint64_t resident_bytes_ = 0;
};

}  // namespace plumb::model
