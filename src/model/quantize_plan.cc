// model/quantize_plan.cc
// The mixtures of llama.cpp's file types as rules over tensor names. Only what its default settings
// do without an importance matrix.
#include "model/quantize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>

#include "base/check.h"
#include "model/families/deepseek_v41_config.h"

namespace plumb::model {
namespace {

using base::Result;
using tensor::DType;

struct FileTypeRow {
  FileType type;
  std::string_view name;
  DType dtype;  // of most matrices
};
constexpr std::array<FileTypeRow, 11> kFileTypes = {{
    {FileType::kF32, "F32", DType::kF32},
    {FileType::kF16, "F16", DType::kF16},
    {FileType::kBF16, "BF16", DType::kBF16},
    {FileType::kQ8_0, "Q8_0", DType::kQ8_0},
    {FileType::kQ6_K, "Q6_K", DType::kQ6_K},
    {FileType::kQ5_K_M, "Q5_K_M", DType::kQ5_K},
    {FileType::kQ5_1, "Q5_1", DType::kQ5_1},
    {FileType::kQ5_0, "Q5_0", DType::kQ5_0},
    {FileType::kQ4_K_M, "Q4_K_M", DType::kQ4_K},
    {FileType::kQ4_1, "Q4_1", DType::kQ4_1},
    {FileType::kQ4_0, "Q4_0", DType::kQ4_0},
}};

const FileTypeRow& RowOf(FileType type) {
  const auto* row = std::ranges::find(kFileTypes, type, &FileTypeRow::type);
  CHECK(row != kFileTypes.end()) << static_cast<uint32_t>(type);
  return *row;
}

uint32_t GgufNumber(DType dtype) {
  constexpr uint32_t kNumbers = 64;
  for (uint32_t number = 0; number < kNumbers; ++number) {
    if (tensor::DTypeFromGguf(number) == dtype) return number;
  }
  CHECK(false) << Name(dtype);
  return 0;
}

// What the mixtures look at besides a tensor's name.
struct ModelShape {
  uint64_t layers = 0;
  uint64_t experts = 0;
  bool tied_output = false;
  bool wide_value_groups = false;  // 80 layers with grouped heads ("70B")
};

ModelShape ShapeOf(const Checkpoint& source) {
  ModelShape shape;
  const auto architecture = source.Text("general.architecture");
  if (!architecture.ok()) return shape;
  const auto number = [&](std::string_view key) {
    return source.Unsigned(fmt::format("{}.{}", *architecture, key)).value_or(0);
  };
  shape.layers = number("block_count");
  shape.experts = number("expert_count");
  shape.tied_output = source.FindTensor("output.weight") == nullptr;
  const bool grouped = number("attention.head_count") != number("attention.head_count_kv");
  shape.wide_value_groups = shape.layers == 80 && grouped;
  return shape;
}

// "blk.12.attn_v.weight" -> 12.
std::optional<uint64_t> LayerOf(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  uint64_t layer = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), layer);
  return parsed.ec == std::errc() ? std::optional(layer) : std::nullopt;
}

// Matrices that are products' weights; what else a file holds is small or no weight.
bool IsMatrixWeight(const GgufTensor& tensor) {
  constexpr std::string_view kKept[] = {"_norm.weight", "ffn_gate_inp.weight", "position_embd",
                                        "token_types", "ssm_conv1d"};
  if (tensor.dims_count < 2 || !tensor.name.ends_with("weight")) return false;
  return std::ranges::none_of(
      kKept, [&](std::string_view part) { return tensor.name.find(part) != tensor.name.npos; });
}

// The first and last eighth of the layers, and every third between.
bool GetsMoreBits(uint64_t layer, uint64_t layers) {
  const uint64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

// The type that the mixture gives a matrix, before its row length is looked at.
DType Mixed(const GgufTensor& tensor, FileType type, const ModelShape& shape) {
  const DType usual = RowOf(type).dtype;
  if (!IsQuantized(usual) || type == FileType::kQ8_0) return usual;
  const std::string_view name = tensor.name;
  const bool is_output =
      name == "output.weight" || (shape.tied_output && name == "token_embd.weight");
  if (is_output) {
    return tensor.dims[0] % Traits(usual).block_inputs == 0 ? DType::kQ6_K : DType::kQ8_0;
  }
  const bool medium = type == FileType::kQ4_K_M || type == FileType::kQ5_K_M;
  const std::optional<uint64_t> layer = LayerOf(name);
  const auto is = [&](std::string_view part) { return name.ends_with(part); };
  if (is(".attn_v.weight")) {
    if (shape.experts == 8) return DType::kQ8_0;
    if (medium && layer && GetsMoreBits(*layer, shape.layers)) return DType::kQ6_K;
    return shape.wide_value_groups && usual == DType::kQ4_K ? DType::kQ5_K : usual;
  }
  if (is(".attn_k.weight") && shape.experts == 8) return DType::kQ8_0;
  if (is(".attn_qkv.weight") && medium) {
    return type == FileType::kQ4_K_M ? DType::kQ5_K : DType::kQ6_K;
  }
  if (is(".attn_output.weight") && shape.experts == 8 && type == FileType::kQ4_K_M) {
    return DType::kQ5_K;
  }
  if (name.find(".ffn_down") != name.npos && medium && layer &&
      GetsMoreBits(*layer, shape.layers)) {
    return DType::kQ6_K;
  }
  return usual;
}

// For rows that are no whole number of the type's blocks: the next larger type of smaller blocks.
DType WithSmallerBlocks(DType dtype, uint64_t inputs) {
  if (inputs % Traits(dtype).block_inputs == 0) return dtype;
  DType smaller = dtype;
  if (dtype == DType::kQ4_K) smaller = DType::kQ5_0;
  if (dtype == DType::kQ5_K) smaller = DType::kQ5_1;
  if (dtype == DType::kQ6_K) smaller = DType::kQ8_0;
  return inputs % Traits(smaller).block_inputs == 0 ? smaller : DType::kF16;
}

Result<PlannedTensor> PlanTensor(const GgufTensor& source, FileType type, const ModelShape& shape) {
  const std::optional<DType> stored = tensor::DTypeFromGguf(source.type);
  PlannedTensor planned{&source, source.type, source.stored_bytes, std::nullopt};
  const bool is_matrix = IsMatrixWeight(source);
  if (!stored) {
    const std::string name = GgufTensorTypeName(source.type);
    // Integer tables are no weights.
    if (!is_matrix && name.starts_with("I") && !name.starts_with("IQ")) return planned;
    return base::Unsupported(fmt::format("tensor {} has the type {}, which cannot be read here",
                                         source.name, name))
        .WithField(std::string(source.name));
  }
  DType wanted = *stored;
  if (type == FileType::kF32) {
    wanted = DType::kF32;
  } else if (is_matrix) {
    wanted = Mixed(source, type, shape);
  }
  const DType given = WithSmallerBlocks(wanted, source.dims[0]);
  if (given != wanted) planned.instead_of = wanted;
  planned.type = given == *stored ? source.type : GgufNumber(given);
  const uint64_t rows = source.elements / source.dims[0];
  ASSIGN_OR_RETURN(planned.bytes, tensor::MatrixBytes(given, rows, source.dims[0]));
  return planned;
}

// F8 with a scale for each block has lost as much, though it is read as F32.
bool IsQuantizedInFile(const GgufTensor& tensor) {
  const std::optional<DType> type = tensor::DTypeFromGguf(tensor.type);
  return (type && IsQuantized(*type)) || tensor.stored_type.starts_with("F8");
}

}  // namespace

std::optional<FileType> FileTypeFromName(std::string_view name) {
  const auto upper = [](unsigned char c) { return std::toupper(c); };
  for (const FileTypeRow& row : kFileTypes) {
    if (std::ranges::equal(name, row.name, {}, upper, upper)) return row.type;
  }
  return std::nullopt;
}

std::string_view Name(FileType type) { return RowOf(type).name; }

std::string_view FileTypeNames() {
  return "F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q5_1, Q5_0, Q4_K_M, Q4_1, Q4_0";
}

Result<QuantizePlan> PlanQuantize(const Checkpoint& source, FileType type) {
  if (source.Unsigned("split.count").value_or(1) > 1) {
    return base::Unsupported("the file is one part of a split model; merge the parts first")
        .WithField("split.count");
  }
  if (IsDeepseekV41(source)) {
    return base::Unsupported(
               "DeepSeek-V4.1 is computed from its folder's own F8 and F4 values, which no type of "
               "a GGUF file holds; use the folder as it is")
        .WithField("general.architecture");
  }
  const ModelShape shape = ShapeOf(source);
  QuantizePlan plan{.type = type};
  for (const GgufTensor& tensor : source.tensors()) {
    ASSIGN_OR_RETURN(PlannedTensor planned, PlanTensor(tensor, type, shape));
    plan.data_bytes += planned.bytes;
    const bool again = !planned.copied() && type != FileType::kF32 && IsQuantizedInFile(tensor);
    if (again && plan.requantized == nullptr) plan.requantized = &tensor;
    plan.tensors.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace plumb::model
