// model/families/deepseek_v41_weights.cc
// One function per part of a layer, in the order in which the model computes; each names its
// tensors. Values are read afterwards, all together.
#include "model/families/deepseek_v41_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/disk.h"
#include "model/families/deepseek_v41_classes.h"
#include "model/families/finite_scan.h"

namespace plumb::model {
namespace {

using base::Corrupt;
using base::Result;
using base::Status;
using tensor::BlockFormat;

constexpr std::string_view kF32 = "F32", kBf16 = "BF16", kF8 = "F8_E4M3", kScale = "F8_E8M0",
                           kF4 = "I8";
// Not computed yet.
constexpr std::string_view kLeftAlone[] = {"mtp.", "vision.", "aligner.", "image_"};

uint64_t Blocks(uint64_t count) { return (count + 31) / 32; }

float FloatAt(const GgufTensor& tensor, uint64_t i) {
  uint32_t bits = 0;
  if (tensor.stored_type == kF32) {
    std::memcpy(&bits, tensor.bytes.data() + 4 * i, 4);
  } else {
    uint16_t half;
    std::memcpy(&half, tensor.bytes.data() + 2 * i, 2);
    bits = uint32_t{half} << 16;
  }
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// In the order of the file: the last is contiguous.
using Shape = std::initializer_list<uint64_t>;

std::string ShapeText(const uint64_t* begin, const uint64_t* end) {
  return fmt::format("[{}]", fmt::join(begin, end, ", "));
}

class Mapper {
 public:
  // `read`: also takes the values of small tensors; else only looks at the directory.
  Mapper(const Checkpoint& checkpoint, const DeepseekConfig& config, bool read)
      : checkpoint_(checkpoint),
        c_(config),
        read_(read),
        taken_(checkpoint.tensors().size(), false) {}

  Result<DeepseekWeights> Run() {
    DeepseekWeights w;
    RETURN_IF_ERROR(Float("embed.weight", {c_.vocabulary, c_.hidden}, w.embedding));
    RETURN_IF_ERROR(Float("head.weight", {c_.vocabulary, c_.hidden}, w.head));
    RETURN_IF_ERROR(Vector("norm.weight", {c_.hidden}, w.norm));
    w.layers.resize(c_.layer_count);
    for (uint32_t i = 0; i < c_.layer_count; ++i) RETURN_IF_ERROR(Layer(i, w.layers[i]));
    RETURN_IF_ERROR(CheckLeftOver());
    w.files = checkpoint_.Keep();
    w.weight_bytes = weight_bytes_;
    w.table_bytes = table_bytes_;
    w.parameters = parameters_;
    return w;
  }

  std::span<const ScanJob> jobs() const { return jobs_; }
  // Of a job.
  const GgufTensor& Tensor(size_t job) const { return *job_tensors_[job]; }

 private:
  Status Layer(uint32_t index, DeepseekLayerWeights& w);
  Status Mix(const std::string& prefix, HyperWeights& w);
  Status Attention(const std::string& prefix, const DeepseekLayer& layer, DeepseekAttention& w);
  Status Compressor(const std::string& prefix, uint32_t ratio, CompressorWeights& w);
  Status Engram(const std::string& prefix, uint32_t place, EngramWeights& w);
  Status Feed(const std::string& prefix, DeepseekFeed& w);
  Status CheckLeftOver() const;

  Result<const GgufTensor*> Take(const std::string& name,
                                 std::initializer_list<std::string_view> types, Shape shape);
  // Of F32 or BF16; both are exact.
  Status Float(const std::string& name, Shape shape, BlockMatrix& out);
  Status Vector(const std::string& name, Shape shape, Floats& out);
  // `name` without ".weight" and ".scale".
  Status F8(const std::string& name, uint64_t outputs, uint64_t inputs, BlockMatrix& out);
  Status F4(const std::string& name, uint64_t outputs, uint64_t inputs, BlockMatrix& out);
  void Scan(const GgufTensor& tensor, ScanKind kind) {
    jobs_.push_back({kind, tensor.bytes});
    job_tensors_.push_back(&tensor);
  }
  static ScanKind FloatKind(const GgufTensor& tensor) {
    return tensor.stored_type == kF32 ? ScanKind::kF32 : ScanKind::kBf16;
  }

  const Checkpoint& checkpoint_;
  const DeepseekConfig& c_;
  const bool read_;
  std::vector<bool> taken_;  // by place in the directory
  std::vector<ScanJob> jobs_;
  std::vector<const GgufTensor*> job_tensors_;
  uint64_t weight_bytes_ = 0;
  uint64_t table_bytes_ = 0;
  uint64_t parameters_ = 0;
};

Result<const GgufTensor*> Mapper::Take(const std::string& name,
                                       std::initializer_list<std::string_view> types, Shape shape) {
  const GgufTensor* tensor = checkpoint_.FindTensor(name);
  if (tensor == nullptr) {
    return Corrupt(fmt::format("the model folder has no tensor {}", name)).WithField(name);
  }
  const bool right_type = std::find(types.begin(), types.end(), tensor->stored_type) != types.end();
  bool right_shape = tensor->dims_count == shape.size();
  for (size_t i = 0; i < shape.size() && right_shape; ++i) {
    right_shape = tensor->dims[shape.size() - 1 - i] == shape.begin()[i];
  }
  if (!right_type || !right_shape) {
    std::array<uint64_t, kGgufDimsMax> dims{};
    std::reverse_copy(tensor->dims.begin(), tensor->dims.begin() + tensor->dims_count,
                      dims.begin());
    return Corrupt(fmt::format("tensor {} is {} {}, expected {} {}", name, tensor->stored_type,
                               ShapeText(dims.data(), dims.data() + tensor->dims_count),
                               fmt::join(types.begin(), types.end(), " or "),
                               ShapeText(shape.begin(), shape.end())))
        .WithField(name);
  }
  const auto place = static_cast<size_t>(tensor - checkpoint_.tensors().data());
  CHECK(!taken_[place]) << name;
  taken_[place] = true;
  weight_bytes_ += tensor->stored_bytes;
  if (tensor->stored_type != kScale) {
    parameters_ += tensor->elements * (tensor->stored_type == kF4 ? 2 : 1);
  }
  return tensor;
}

Status Mapper::Float(const std::string& name, Shape shape, BlockMatrix& out) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor, Take(name, {kBf16, kF32}, shape));
  Scan(*tensor, FloatKind(*tensor));
  out = {.format = tensor->stored_type == kF32 ? BlockFormat::kF32 : BlockFormat::kBf16,
         .outputs = static_cast<uint32_t>(shape.begin()[0]),
         .inputs = static_cast<uint32_t>(shape.begin()[1]),
         .weights = tensor->bytes.data()};
  return base::OkStatus();
}

Status Mapper::Vector(const std::string& name, Shape shape, Floats& out) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor, Take(name, {kBf16, kF32}, shape));
  Scan(*tensor, FloatKind(*tensor));
  if (!read_) return base::OkStatus();
  out.resize(tensor->elements);
  for (uint64_t i = 0; i < out.size(); ++i) out[i] = FloatAt(*tensor, i);
  return base::OkStatus();
}

Status Mapper::F8(const std::string& name, uint64_t outputs, uint64_t inputs, BlockMatrix& out) {
  ASSIGN_OR_RETURN(const GgufTensor* weight, Take(name + ".weight", {kF8}, {outputs, inputs}));
  ASSIGN_OR_RETURN(const GgufTensor* scale,
                   Take(name + ".scale", {kScale}, {Blocks(outputs), Blocks(inputs)}));
  Scan(*weight, ScanKind::kF8E4M3);
  Scan(*scale, ScanKind::kF8E8M0);
  out = {BlockFormat::kF8Block32, static_cast<uint32_t>(outputs), static_cast<uint32_t>(inputs),
         weight->bytes.data(), scale->bytes.data()};
  return base::OkStatus();
}

Status Mapper::F4(const std::string& name, uint64_t outputs, uint64_t inputs, BlockMatrix& out) {
  ASSIGN_OR_RETURN(const GgufTensor* weight, Take(name + ".weight", {kF4}, {outputs, inputs / 2}));
  ASSIGN_OR_RETURN(const GgufTensor* scale,
                   Take(name + ".scale", {kScale}, {outputs, inputs / 32}));
  Scan(*scale, ScanKind::kF8E8M0);
  out = {BlockFormat::kF4Group32, static_cast<uint32_t>(outputs), static_cast<uint32_t>(inputs),
         weight->bytes.data(), scale->bytes.data()};
  return base::OkStatus();
}

Status Mapper::Layer(uint32_t index, DeepseekLayerWeights& w) {
  const DeepseekLayer& layer = c_.layers[index];
  const std::string prefix = fmt::format("layers.{}.", index);
  if (layer.engram != kNoLayer) {
    RETURN_IF_ERROR(Engram(prefix + "engram.", layer.engram, w.engram));
  }
  RETURN_IF_ERROR(Mix(prefix + "hc_attn_", w.attention_mix));
  RETURN_IF_ERROR(Vector(prefix + "attn_norm.weight", {c_.hidden}, w.attention_norm));
  RETURN_IF_ERROR(Attention(prefix + "attn.", layer, w.attention));
  RETURN_IF_ERROR(Mix(prefix + "hc_ffn_", w.feed_mix));
  RETURN_IF_ERROR(Vector(prefix + "ffn_norm.weight", {c_.hidden}, w.feed_norm));
  return Feed(prefix + "ffn.", w.feed);
}

Status Mapper::Mix(const std::string& prefix, HyperWeights& w) {
  const uint64_t m = c_.streams;
  const uint64_t outputs = (2 + m) * m;
  RETURN_IF_ERROR(Float(prefix + "fn", {outputs, m * c_.hidden}, w.fn));
  RETURN_IF_ERROR(Vector(prefix + "base", {outputs}, w.base));
  Floats scale;
  RETURN_IF_ERROR(Vector(prefix + "scale", {3}, scale));
  std::copy(scale.begin(), scale.end(), w.scale);
  return base::OkStatus();
}

Status Mapper::Attention(const std::string& prefix, const DeepseekLayer& layer,
                         DeepseekAttention& w) {
  const uint64_t queries = uint64_t{c_.heads} * c_.head_dim;
  const uint64_t ranks = uint64_t{c_.output_groups} * c_.output_rank;
  RETURN_IF_ERROR(F8(prefix + "wq_a", c_.query_rank, c_.hidden, w.query_a));
  RETURN_IF_ERROR(Vector(prefix + "q_norm.weight", {c_.query_rank}, w.query_norm));
  RETURN_IF_ERROR(F8(prefix + "wq_b", queries, c_.query_rank, w.query_b));
  RETURN_IF_ERROR(F8(prefix + "wkv", c_.head_dim, c_.hidden, w.kv));
  RETURN_IF_ERROR(Vector(prefix + "kv_norm.weight", {c_.head_dim}, w.kv_norm));
  RETURN_IF_ERROR(Vector(prefix + "attn_sink", {c_.heads}, w.sinks));
  RETURN_IF_ERROR(F8(prefix + "wo_a", ranks, queries / c_.output_groups, w.output_a));
  RETURN_IF_ERROR(F8(prefix + "wo_b", c_.hidden, ranks, w.output_b));
  if (layer.owns_kv) RETURN_IF_ERROR(Compressor(prefix, layer.ratio, w.compressor));
  if (!layer.owns_index) return base::OkStatus();
  RETURN_IF_ERROR(F8(prefix + "indexer.wq_b", uint64_t{c_.index_heads} * c_.index_dim,
                     c_.query_rank, w.indexer.query));
  return Float(prefix + "indexer.weights_proj.weight", {c_.index_heads, c_.hidden},
               w.indexer.weights);
}

Status Mapper::Compressor(const std::string& prefix, uint32_t ratio, CompressorWeights& w) {
  RETURN_IF_ERROR(Float(prefix + "compressor.wkv.weight", {c_.head_dim, c_.hidden}, w.value));
  if (ratio > 1) {
    RETURN_IF_ERROR(Float(prefix + "compressor.wgate.weight", {c_.head_dim, c_.hidden}, w.gate));
  }
  RETURN_IF_ERROR(Vector(prefix + "compressor.norm.weight", {c_.head_dim}, w.norm));
  RETURN_IF_ERROR(Float(prefix + "indexer.wk.weight", {c_.index_dim, c_.head_dim}, w.key));
  return Vector(prefix + "indexer.k_norm.weight", {c_.index_dim}, w.key_norm);
}

Status Mapper::Engram(const std::string& prefix, uint32_t place, EngramWeights& w) {
  const uint64_t rows = c_.engram_rows[place];
  const uint64_t width = c_.engram_head_dim;
  ASSIGN_OR_RETURN(const GgufTensor* codes, Take(prefix + "embed.weight", {kF8}, {rows, width}));
  ASSIGN_OR_RETURN(const GgufTensor* scales,
                   Take(prefix + "embed.scale", {kScale}, {rows, width / 32}));
  Scan(*scales, ScanKind::kF8E8M0);
  const uint64_t bytes = codes->stored_bytes + scales->stored_bytes;
  weight_bytes_ -= bytes;
  table_bytes_ += bytes;
  w.table = {codes->bytes.data(), scales->bytes.data(), rows, c_.engram_head_dim};
  RETURN_IF_ERROR(F8(prefix + "wkv", (c_.streams + uint64_t{1}) * c_.hidden,
                     (c_.engram_ngram_max - uint64_t{1}) * c_.engram_heads * width, w.kv));
  Floats key;
  RETURN_IF_ERROR(Vector(prefix + "q_weight", {c_.streams, c_.hidden}, w.query_key));
  RETURN_IF_ERROR(Vector(prefix + "k_weight", {c_.streams, c_.hidden}, key));
  for (size_t i = 0; i < key.size(); ++i) w.query_key[i] *= key[i];
  return base::OkStatus();
}

Status Mapper::Feed(const std::string& prefix, DeepseekFeed& w) {
  RETURN_IF_ERROR(Float(prefix + "gate.weight", {c_.experts, c_.hidden}, w.router));
  RETURN_IF_ERROR(Vector(prefix + "gate.bias", {c_.experts}, w.bias));
  RETURN_IF_ERROR(Vector(prefix + "gate.bias_vl", {c_.experts}, w.bias_image));
  const std::string shared = prefix + "shared_experts.";
  RETURN_IF_ERROR(F8(shared + "w1", c_.expert_width, c_.hidden, w.shared.gate));
  RETURN_IF_ERROR(F8(shared + "w3", c_.expert_width, c_.hidden, w.shared.up));
  RETURN_IF_ERROR(F8(shared + "w2", c_.hidden, c_.expert_width, w.shared.down));
  w.experts.resize(c_.experts);
  for (uint32_t i = 0; i < c_.experts; ++i) {
    const std::string expert = fmt::format("{}experts.{}.", prefix, i);
    RETURN_IF_ERROR(F4(expert + "w1", c_.expert_width, c_.hidden, w.experts[i].gate));
    RETURN_IF_ERROR(F4(expert + "w3", c_.expert_width, c_.hidden, w.experts[i].up));
    RETURN_IF_ERROR(F4(expert + "w2", c_.hidden, c_.expert_width, w.experts[i].down));
  }
  return base::OkStatus();
}

Status Mapper::CheckLeftOver() const {
  const std::span<const GgufTensor> tensors = checkpoint_.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string_view name = tensors[i].name;
    const bool known =
        std::any_of(std::begin(kLeftAlone), std::end(kLeftAlone),
                    [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (taken_[i] || known) continue;
    return base::Unsupported(
               fmt::format("tensor {} has no place in DeepSeek-V4.1 as config.json describes it; "
                           "computing without it would give wrong answers",
                           name))
        .WithField(std::string(name));
  }
  return base::OkStatus();
}

}  // namespace

Result<DeepseekWeights> MapDeepseekWeights(const Checkpoint& checkpoint,
                                           const DeepseekConfig& config,
                                           const LoadOptions& options) {
  Mapper mapper(checkpoint, config, /*read=*/true);
  ASSIGN_OR_RETURN(DeepseekWeights weights, mapper.Run());
  if (!config.engram_layers.empty()) {
    ASSIGN_OR_RETURN(weights.token_classes,
                     DeepseekClasses(checkpoint, config, options.token_classes));
  }
  const auto bad = FindNotFinite(mapper.jobs(), options.loader(), options.progress);
  if (bad) {
    const GgufTensor& tensor = mapper.Tensor(*bad);
    const std::string file = checkpoint.FileOf(tensor);
    return Corrupt(fmt::format("tensor {} holds a {} that is not finite; {} is damaged: fetch it "
                               "again",
                               tensor.name, tensor.stored_type == kScale ? "scale" : "value",
                               file.empty() ? "the model's file" : file))
        .WithField(std::string(tensor.name));
  }
  // Only now, since the scan read them in order.
  for (const DeepseekLayerWeights& layer : weights.layers) {
    const EngramTable& table = layer.engram.table;
    base::Advise({table.codes, table.rows * table.width}, base::MapAdvice::kRandom);
    base::Advise({table.scales, table.rows * (table.width / 32)}, base::MapAdvice::kRandom);
  }
  return weights;
}

Status CheckDeepseekTensors(const Checkpoint& checkpoint, const DeepseekConfig& config) {
  return base::ToStatus(Mapper(checkpoint, config, /*read=*/false).Run());
}

}  // namespace plumb::model
