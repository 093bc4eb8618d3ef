// model/weight_reader.h
// Takes tensors out of a Gguf by name for a family's loader: shape and type are checked, matrices
// packed, small vectors expanded to f32. It knows which tensors were taken, so that a weight that a
// family does not know is refused instead of silently left out of the arithmetic.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/gguf.h"
#include "model/load.h"
#include "tensor/packed_matrix.h"

namespace plumb::model {

// One loading; borrows both arguments. Thread: one at a time.
class WeightReader {
 public:
  WeightReader(const Gguf& gguf, const LoadOptions& options);

  bool Has(const std::string& name) const { return gguf_.FindTensor(name) != nullptr; }

  // kCorrupt: missing, or another shape; kUnsupported: a data type without kernels; kOverloaded.
  base::Result<tensor::PackedMatrix> Matrix(const std::string& name, uint64_t outputs,
                                            uint64_t inputs);
  // Also kCorrupt: a value that is not finite.
  base::Result<std::vector<float>> Vector(const std::string& name, uint64_t size);
  // Empty when the file has no such tensor.
  base::Result<std::vector<float>> VectorIfAny(const std::string& name, uint64_t size);
  // The tensor itself, checked as for Matrix.
  base::Result<const GgufTensor*> Raw(const std::string& name, uint64_t outputs, uint64_t inputs);

  // kUnsupported: the first tensor, in file order, that was never asked for.
  base::Status RefuseUnused(std::string_view family) const;

  uint64_t resident_bytes() const { return resident_bytes_; }  // of what was handed out

 private:
  void Took(const GgufTensor& tensor, uint64_t resident_bytes);

  const Gguf& gguf_;
  const LoadOptions& options_;
  std::set<std::string_view> taken_;
  LoadProgress progress_;
  uint64_t resident_bytes_ = 0;
};

}  // namespace plumb::model
