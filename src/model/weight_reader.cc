// model/weight_reader.cc: checks first, then copies. What is handed out owns its memory, so that
// the file may go away.
#include "model/weight_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "model/families/finite_scan.h"
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

Status NotFinite(const GgufTensor& tensor) {
  return Corrupt(fmt::format("tensor {} holds a value that is not finite", tensor.name))
      .WithField(std::string(tensor.name));
}

// A damaged scale would make every answer worthless, so it is found before the model serves.
Status CheckFinite(const GgufTensor& tensor, std::span<const std::byte> rows,
                   tensor::ThreadPool& pool) {
  ASSIGN_OR_RETURN(const tensor::DType type, TypeOf(tensor));
  return tensor::AllFinite(type, rows, pool) ? base::OkStatus() : NotFinite(tensor);
}

// Of types that are computed from as they lie in the file.
std::optional<ScanKind> MappedKind(const GgufTensor& tensor) {
  if (tensor.type != kNoGgufType) return std::nullopt;
  if (tensor.stored_type == "F8_E4M3") return ScanKind::kF8E4M3;
  if (tensor.stored_type == "F8_E8M0") return ScanKind::kF8E8M0;
  return std::nullopt;
}

std::string ShapeText(const GgufTensor& tensor) {
  std::string text;
  for (uint32_t i = 0; i < tensor.dims_count; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " x ", tensor.dims[i]);
  }
  return text;
}

// The tensor with the shape, when a kernel reads its type.
Result<const GgufTensor*> FindChecked(const Checkpoint& checkpoint, const WeightSpec& spec) {
  const GgufTensor* tensor = checkpoint.FindTensor(spec.name);
  if (tensor == nullptr) {
    return Corrupt(fmt::format("the model file has no tensor {}", spec.name)).WithField(spec.name);
  }
  const bool stacked = spec.experts != 0;
  const bool fits = tensor->dims[0] == spec.inputs && tensor->dims[1] == spec.outputs &&
                    tensor->dims[2] == (stacked ? spec.experts : 1) && tensor->dims[3] == 1;
  if (!fits) {
    return Corrupt(fmt::format("tensor {} is {}, expected {} x {}{}", spec.name, ShapeText(*tensor),
                               spec.inputs, spec.outputs,
                               stacked ? fmt::format(" x {}", spec.experts) : ""))
        .WithField(spec.name);
  }
  RETURN_IF_ERROR(TypeOf(*tensor));
  return tensor;
}

}  // namespace

Status CheckWeights(const Checkpoint& checkpoint, std::span<const WeightSpec> specs,
                    std::string_view family) {
  std::set<std::string_view> known;
  for (const WeightSpec& spec : specs) {
    known.insert(spec.name);
    if (spec.optional && checkpoint.FindTensor(spec.name) == nullptr) continue;
    RETURN_IF_ERROR(FindChecked(checkpoint, spec));
  }
  for (const GgufTensor& tensor : checkpoint.tensors()) {
    if (known.contains(tensor.name)) continue;
    return base::Unsupported(
               fmt::format("tensor {} has no place in the {} family; computing without "
                           "it would give wrong answers",
                           tensor.name, family))
        .WithField(std::string(tensor.name));
  }
  return base::OkStatus();
}

Status CheckValues(const Checkpoint& checkpoint, tensor::ThreadPool& pool) {
  constexpr uint64_t kElementsAtOnce = 16u << 20;
  for (const GgufTensor& tensor : checkpoint.tensors()) {
    if (const auto kind = MappedKind(tensor)) {
      const ScanJob job{*kind, tensor.bytes};
      if (FindNotFinite({&job, 1}, pool, {})) return NotFinite(tensor);
    }
    if (!tensor::DTypeFromGguf(tensor.type) || tensor.elements == 0) continue;
    const uint64_t rows = tensor.elements / tensor.dims[0];
    const uint64_t step = std::max<uint64_t>(1, kElementsAtOnce / tensor.dims[0]);
    for (uint64_t first = 0; first < rows; first += step) {
      tensor::AlignedBuffer scratch;
      ASSIGN_OR_RETURN(const std::span<const std::byte> bytes,
                       checkpoint.Rows(tensor, {first, std::min(step, rows - first)}, scratch));
      RETURN_IF_ERROR(CheckFinite(tensor, bytes, pool));
    }
  }
  return base::OkStatus();
}

WeightReader::WeightReader(const Checkpoint& checkpoint, const LoadOptions& options,
                           tensor::WeightArena& arena)
    : checkpoint_(checkpoint), options_(options), arena_(arena) {
  for (const GgufTensor& tensor : checkpoint.tensors()) {
    progress_.bytes_total += tensor.stored_bytes;
  }
}

void WeightReader::Took(const GgufTensor& tensor, uint32_t part, uint64_t stored_bytes,
                        uint64_t resident_bytes) {
  resident_bytes_ += resident_bytes;
  if (!taken_.insert({tensor.name, part}).second) return;  // a second use: tied embeddings
  progress_.bytes_done += stored_bytes;
  if (options_.progress) options_.progress(progress_);
}

Result<const GgufTensor*> WeightReader::Raw(const std::string& name, uint64_t outputs,
                                            uint64_t inputs) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor,
                   FindChecked(checkpoint_, {.name = name, .outputs = outputs, .inputs = inputs}));
  if (tensor->bytes.empty()) {
    Kept& kept = kept_.emplace_back();
    kept.tensor = *tensor;
    ASSIGN_OR_RETURN(kept.tensor.bytes, checkpoint_.Rows(*tensor, {0, outputs}, kept.memory));
    tensor = &kept.tensor;
  }
  RETURN_IF_ERROR(CheckFinite(*tensor, tensor->bytes, options_.loader()));
  Took(*tensor, 0, tensor->stored_bytes, 0);
  return tensor;
}

// Matrix number `part` of a stack, or the only one.
Result<tensor::PackedMatrix> WeightReader::Pack(const GgufTensor& tensor, uint32_t part,
                                                uint64_t outputs, uint64_t inputs) {
  tensor::AlignedBuffer scratch;
  ASSIGN_OR_RETURN(const std::span<const std::byte> rows,
                   checkpoint_.Rows(tensor, {part * outputs, outputs}, scratch));
  RETURN_IF_ERROR(CheckFinite(tensor, rows, options_.loader()));
  ASSIGN_OR_RETURN(const tensor::DType type, TypeOf(tensor));
  auto matrix = tensor::PackedMatrix::Pack(type, outputs, inputs, rows, options_.loader(), &arena_);
  if (!matrix.ok()) {
    const std::string name(tensor.name);
    Status status(matrix.status().code(),
                  fmt::format("tensor {}: {}", name, matrix.status().message()));
    return std::move(status).WithField(name);
  }
  const uint64_t parts = tensor.elements / (outputs * inputs);
  Took(tensor, part, tensor.stored_bytes / parts, matrix->size_bytes());
  return matrix;
}

Result<tensor::PackedMatrix> WeightReader::Matrix(const std::string& name, uint64_t outputs,
                                                  uint64_t inputs) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor,
                   FindChecked(checkpoint_, {.name = name, .outputs = outputs, .inputs = inputs}));
  return Pack(*tensor, 0, outputs, inputs);
}

Result<tensor::PackedMatrix> WeightReader::ExpertMatrix(const std::string& name, uint32_t expert,
                                                        uint32_t experts, uint64_t outputs,
                                                        uint64_t inputs) {
  CHECK(expert < experts) << name << " " << expert;
  ASSIGN_OR_RETURN(
      const GgufTensor* tensor,
      FindChecked(checkpoint_,
                  {.name = name, .outputs = outputs, .inputs = inputs, .experts = experts}));
  return Pack(*tensor, expert, outputs, inputs);
}

Result<std::vector<float>> WeightReader::Vector(const std::string& name, uint64_t size) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor,
                   FindChecked(checkpoint_, {.name = name, .outputs = 1, .inputs = size}));
  tensor::AlignedBuffer scratch;
  ASSIGN_OR_RETURN(const std::span<const std::byte> row,
                   checkpoint_.Rows(*tensor, {0, 1}, scratch));
  RETURN_IF_ERROR(CheckFinite(*tensor, row, options_.loader()));
  ASSIGN_OR_RETURN(const tensor::DType type, TypeOf(*tensor));
  std::vector<float> values(size);
  RETURN_IF_ERROR(tensor::DequantizeRow(type, row, values));
  Took(*tensor, 0, tensor->stored_bytes, size * sizeof(float));
  return values;
}

Result<std::vector<float>> WeightReader::VectorIfAny(const std::string& name, uint64_t size) {
  if (checkpoint_.FindTensor(name) == nullptr) return std::vector<float>();
  return Vector(name, size);
}

}  // namespace plumb::model
