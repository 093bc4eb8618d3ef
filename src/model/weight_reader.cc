// model/weight_reader.cc: checks first, then copies. What is handed out owns its memory, so that
// the file may go away.
#include "model/weight_reader.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "tensor/dequantize.h"
#include "tensor/dtype.h"

namespace plumb::model {

using base::Corrupt;
using base::Result;
using base::Status;

namespace {

Result<tensor::DType> TypeOf(const GgufTensor& tensor) {
  const std::optional<tensor::DType> type = tensor::DTypeFromGguf(tensor.type);
  if (type) return *type;
  return base::Unsupported(fmt::format("tensor {} is stored as {}, which is not supported",
                                       tensor.name, GgufTensorTypeName(tensor.type)))
      .WithField(std::string(tensor.name));
}

// A damaged scale would make every answer worthless, so it is found before the model serves.
Status CheckFinite(const GgufTensor& tensor, tensor::ThreadPool& pool) {
  ASSIGN_OR_RETURN(const tensor::DType type, TypeOf(tensor));
  if (tensor::AllFinite(type, tensor.bytes, pool)) return base::OkStatus();
  return Corrupt(fmt::format("tensor {} holds a value that is not finite", tensor.name))
      .WithField(std::string(tensor.name));
}

// The tensor with the shape, when a kernel reads its type.
Result<const GgufTensor*> FindChecked(const Gguf& gguf, const std::string& name, uint64_t outputs,
                                      uint64_t inputs) {
  const GgufTensor* tensor = gguf.FindTensor(name);
  if (tensor == nullptr) {
    return Corrupt(fmt::format("the model file has no tensor {}", name)).WithField(name);
  }
  if (tensor->dims[0] != inputs || tensor->elements != outputs * inputs) {
    return Corrupt(fmt::format("tensor {} is {} x {}, expected {} x {}", name, tensor->dims[0],
                               tensor->elements / tensor->dims[0], inputs, outputs))
        .WithField(name);
  }
  RETURN_IF_ERROR(TypeOf(*tensor));
  return tensor;
}

}  // namespace

Status CheckWeights(const Gguf& gguf, std::span<const WeightSpec> specs, std::string_view family) {
  std::set<std::string_view> known;
  for (const WeightSpec& spec : specs) {
    known.insert(spec.name);
    if (spec.optional && gguf.FindTensor(spec.name) == nullptr) continue;
    RETURN_IF_ERROR(FindChecked(gguf, spec.name, spec.outputs, spec.inputs));
  }
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (known.contains(tensor.name)) continue;
    return base::Unsupported(
               fmt::format("tensor {} has no place in the {} family; computing without "
                           "it would give wrong answers",
                           tensor.name, family))
        .WithField(std::string(tensor.name));
  }
  return base::OkStatus();
}

WeightReader::WeightReader(const Gguf& gguf, const LoadOptions& options, tensor::WeightArena& arena)
    : gguf_(gguf), options_(options), arena_(arena) {
  for (const GgufTensor& tensor : gguf.tensors()) progress_.bytes_total += tensor.bytes.size();
}

void WeightReader::Took(const GgufTensor& tensor, uint64_t resident_bytes) {
  resident_bytes_ += resident_bytes;
  if (!taken_.insert(tensor.name).second) return;  // a second use: tied embeddings
  progress_.bytes_done += tensor.bytes.size();
  if (options_.progress) options_.progress(progress_);
}

Result<const GgufTensor*> WeightReader::Raw(const std::string& name, uint64_t outputs,
                                            uint64_t inputs) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor, FindChecked(gguf_, name, outputs, inputs));
  RETURN_IF_ERROR(CheckFinite(*tensor, options_.pool));
  Took(*tensor, 0);
  return tensor;
}

Result<tensor::PackedMatrix> WeightReader::Matrix(const std::string& name, uint64_t outputs,
                                                  uint64_t inputs) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor, FindChecked(gguf_, name, outputs, inputs));
  RETURN_IF_ERROR(CheckFinite(*tensor, options_.pool));
  ASSIGN_OR_RETURN(const tensor::DType type, TypeOf(*tensor));
  auto matrix =
      tensor::PackedMatrix::Pack(type, outputs, inputs, tensor->bytes, options_.pool, &arena_);
  if (!matrix.ok()) {
    Status status(matrix.status().code(),
                  fmt::format("tensor {}: {}", name, matrix.status().message()));
    return std::move(status).WithField(name);
  }
  Took(*tensor, matrix->size_bytes());
  return matrix;
}

Result<std::vector<float>> WeightReader::Vector(const std::string& name, uint64_t size) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor, FindChecked(gguf_, name, 1, size));
  RETURN_IF_ERROR(CheckFinite(*tensor, options_.pool));
  ASSIGN_OR_RETURN(const tensor::DType type, TypeOf(*tensor));
  std::vector<float> values(size);
  RETURN_IF_ERROR(tensor::DequantizeRow(type, tensor->bytes, values));
  Took(*tensor, size * sizeof(float));
  return values;
}

Result<std::vector<float>> WeightReader::VectorIfAny(const std::string& name, uint64_t size) {
  if (gguf_.FindTensor(name) == nullptr) return std::vector<float>();
  return Vector(name, size);
}

}  // namespace plumb::model
