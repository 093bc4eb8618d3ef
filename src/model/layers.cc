// model/layers.cc: the steps, each a few tensor operations over the rows alive. Buffers are parts
// of one allocation; what a step may assume about its arguments was checked in Begin.
#include "model/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "tensor/attention.h"
#include "tensor/dequantize.h"
#include "tensor/numerics.h"

namespace plumb::model {

using base::Result;
using base::Status;

static_assert(kPageTokens == tensor::kPageTokens);

// ---- before the first step ----

namespace {

tensor::KvLayout LayoutOfPages(const Config& config, const LoadOptions& options) {
  return {config.layers, config.kv_heads, config.head_dim, options.kv_format};
}

}  // namespace

uint32_t ContextMax(const Config& config, const LoadOptions& options) {
  return std::min(config.context_max,
                  options.context_max != 0 ? options.context_max : kContextDefaultMax);
}

Status CheckAttention(const Config& config) {
  const auto refuse = [&](std::string_view key, std::string_view why) {
    const std::string field = fmt::format("{}.{}", config.architecture, key);
    return base::Unsupported(fmt::format("{}: {}", field, why)).WithField(field);
  };
  constexpr uint32_t kHeadDimMultiple = 16;  // of a KV page's planes
  if (config.head_dim % kHeadDimMultiple != 0) {
    return refuse("attention.key_length",
                  fmt::format("heads of {} are not supported (a multiple of {} is needed)",
                              config.head_dim, kHeadDimMultiple));
  }
  if (config.windows_unknown) {
    return refuse("attention.sliding_window", "not supported in this family");
  }
  return base::OkStatus();
}

Result<tensor::RotaryTable> BuildRotary(const Config& config, double base, double scale,
                                        std::span<const float> factors,
                                        const LoadOptions& options) {
  return tensor::RotaryTable::Build({.dims = config.rope_dims,
                                     .positions_max = ContextMax(config, options),
                                     .base = base,
                                     .position_scale = 1.0 / scale,
                                     .frequency_factors = factors},
                                    options.loader());
}

ModelInfo DescribeModel(const Checkpoint& checkpoint, const Config& config,
                        const OuterWeights& weights, const LoadOptions& options) {
  ModelInfo info;
  info.architecture = config.architecture;
  info.name = config.name;
  info.vocabulary_size = config.vocabulary;
  info.hidden_width = config.embedding;
  info.context_max = ContextMax(config, options);
  info.page_bytes = LayoutOfPages(config, options).page_bytes();
  for (const GgufTensor& tensor : checkpoint.tensors()) info.parameters += tensor.elements;
  info.weight_bytes = weights.resident_bytes;
  const bool f16 = options.kv_format == tensor::KvFormat::kF16;
  info.numerics_id =
      tensor::NumericsOfProcess(fmt::format("{}-{}", tensor::kNumericsId, f16 ? "f16kv" : "q8kv"));
  return info;
}

ForwardPass::ForwardPass(const Config& config, const LoadOptions& options)
    : config_(config),
      compute_{options.pool, options.kernels},
      layout_(LayoutOfPages(config, options)),
      pairing_(config.rope_pairs == RotaryPairs::kAdjacent ? tensor::RotaryPairing::kAdjacent
                                                           : tensor::RotaryPairing::kHalves),
      batch_({.rows_max = options.rows_max,
              .logits_rows_max = options.logits_rows_max,
              .context_max = ContextMax(config, options),
              .vocabulary = config.vocabulary,
              .width = config.embedding}) {}

Result<ForwardPass> ForwardPass::Create(const Config& config, const LoadOptions& options) {
  ForwardPass pass(config, options);
  const uint64_t rows = options.rows_max;
  const std::pair<float**, uint64_t> parts[] = {
      {&pass.hidden_, rows * config.embedding},    {&pass.normed_, rows * config.embedding},
      {&pass.queries_, rows * QueryWidth(config)}, {&pass.keys_, rows * KeyWidth(config)},
      {&pass.values_, rows * KeyWidth(config)},    {&pass.attended_, rows * QueryWidth(config)},
      {&pass.gate_, rows * config.feed_forward},   {&pass.up_, rows * config.feed_forward},
  };
  constexpr uint64_t kAlignment = 16;  // floats
  const auto aligned = [](uint64_t count) {
    return (count + kAlignment - 1) / kAlignment * kAlignment;
  };
  uint64_t total = 0;
  for (const auto& [pointer, count] : parts) total += aligned(count);
  ASSIGN_OR_RETURN(pass.memory_, tensor::AlignedBuffer::Allocate(total * sizeof(float)));
  auto* next = reinterpret_cast<float*>(pass.memory_.data());
  for (const auto& [pointer, count] : parts) {
    *pointer = next;
    next += aligned(count);
  }
  const auto inputs_max = static_cast<uint32_t>(
      std::max({uint64_t{config.embedding}, QueryWidth(config), uint64_t{config.feed_forward}}));
  ASSIGN_OR_RETURN(pass.quantised_, tensor::Activations::Allocate(options.rows_max, inputs_max));
  ASSIGN_OR_RETURN(
      pass.attention_scratch_,
      tensor::AttentionScratch::Allocate(pass.layout_, config.heads, ContextMax(config, options),
                                         options.pool.threads()));
  return pass;
}

// ---- the steps ----

void ForwardPass::Begin(std::span<const SequenceRows> sequences, std::span<float> logits) {
  batch_.Gather(sequences);
  CHECK(logits.size() == uint64_t{batch_.logits_rows()} * config_.vocabulary) << logits.size();
  logits_ = logits;
  rows_ = batch_.all().rows();
}

void ForwardPass::Embed(const OuterWeights& weights, float scale) {
  const EmbeddingTable& table = weights.embedding;
  compute_.pool.ParallelFor(rows_, [&](uint32_t row) {
    const uint32_t token = batch_.tokens()[row];
    const std::span out(hidden_ + uint64_t{row} * config_.embedding, config_.embedding);
    if (table.rows.size() == 0) {
      weights.output.UnpackRow(token, out);
    } else {
      const std::span stored(table.rows.data() + token * table.row_bytes, table.row_bytes);
      const Status status = tensor::DequantizeRow(table.type, stored, out);
      DCHECK(status.ok()) << status.ToString();
    }
    if (scale == 1) return;
    for (float& value : out) value *= scale;
  });
}

void ForwardPass::Norm(const float* x, const std::vector<float>& weight, float* out) {
  RmsNorm(compute_, x, rows_, config_.embedding, weight.data(), config_.rms_epsilon, out);
}

void ForwardPass::Linear(const float* x, uint32_t rows, uint32_t inputs,
                         std::span<const tensor::Product> products) {
  tensor::Linear(compute_, x, rows, inputs, quantised_, products);
}

void ForwardPass::ProjectQueriesKeysValues(const AttentionWeights& weights, bool last_layer) {
  const tensor::Product query = {&weights.query.matrix, queries_, weights.query.bias_or_null()};
  const tensor::Product key = {&weights.key.matrix, keys_, weights.key.bias_or_null()};
  const tensor::Product value = {&weights.value.matrix, values_, weights.value.bias_or_null()};
  const uint32_t wanted = batch_.wanted().rows();
  if (!last_layer || wanted == rows_) {
    Linear(normed_, rows_, config_.embedding, std::array{query, key, value});
    return;
  }
  Linear(normed_, rows_, config_.embedding, std::array{key, value});
  batch_.KeepWanted(normed_, config_.embedding);
  batch_.KeepWanted(hidden_, config_.embedding);
  rows_ = wanted;
  Linear(normed_, rows_, config_.embedding, std::array{query});
}

void ForwardPass::Attend(uint32_t index, const AttentionWeights& weights,
                         const AttentionView& view) {
  const bool last_layer = index + 1 == config_.layers;
  ProjectQueriesKeysValues(weights, last_layer);
  const RowSet& all = batch_.all();
  const RowSet& alive = last_layer ? batch_.wanted() : all;
  const auto norm_heads = [&](const std::vector<float>& weight, uint32_t heads, float* x) {
    if (weight.empty()) return;
    RmsNorm(compute_, x, heads, config_.head_dim, weight.data(), config_.rms_epsilon, x);
  };
  norm_heads(weights.query_norm, alive.rows() * config_.heads, queries_);
  norm_heads(weights.key_norm, all.rows() * config_.kv_heads, keys_);
  const auto rotate = [&](const RowSet& rows, uint32_t heads, float* x) {
    Rotate(compute_, *view.rotary, pairing_, rows.positions, heads, config_.head_dim, x);
  };
  rotate(alive, config_.heads, queries_);
  rotate(all, config_.kv_heads, keys_);
  StoreKeysValues(compute_, layout_, index, all.sequences, keys_, values_);
  tensor::Attend(compute_, layout_, index, {config_.heads, view.scale, view.window},
                 alive.sequences, queries_, attended_, attention_scratch_);
}

void ForwardPass::ProjectHeads(const Projection& output, Target target) {
  Linear(attended_, rows_, static_cast<uint32_t>(QueryWidth(config_)),
         std::array<tensor::Product, 1>{
             {{&output.matrix, target.out, output.bias_or_null(), target.add}}});
}

void ForwardPass::FeedForward(const GatedWeights& weights, GateFunction function, InputRows input,
                              Target target) {
  Linear(input.x, input.count, config_.embedding,
         std::array<tensor::Product, 2>{{{&weights.gate, gate_}, {&weights.up, up_}}});
  const auto act = function == GateFunction::kSwiGlu ? tensor::SwiGlu : tensor::GeGlu;
  act(compute_, gate_, up_, input.count, config_.feed_forward, gate_);
  Linear(gate_, input.count, config_.feed_forward,
         std::array<tensor::Product, 1>{{{&weights.down, target.out, nullptr, target.add}}});
}

void ForwardPass::AddNormed(float* x, const std::vector<float>& weight) {
  Norm(x, weight, x);
  Add(compute_, hidden_, x, rows_, config_.embedding, hidden_);
}

void ForwardPass::Outputs(const OuterWeights& weights, float soft_cap) {
  Norm(hidden_, weights.output_norm, normed_);
  batch_.TakeHidden(normed_);
  const uint32_t rows = batch_.logits_rows();
  if (rows == 0) return;
  Linear(normed_, rows, config_.embedding,
         std::array<tensor::Product, 1>{{{&weights.output, logits_.data()}}});
  if (soft_cap > 0) SoftCap(compute_, soft_cap, rows, config_.vocabulary, logits_.data());
}

}  // namespace plumb::model
