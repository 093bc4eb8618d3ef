// model/llama.cc
// The Llama family (Llama 2 and 3, SmolLM2, Mistral, TinyLlama) and its sibling Qwen2:
// pre-normalised layers of grouped-query attention and a gated feed-forward. Read top to bottom:
// what a model may look like, its weights' names, loading, Forward. Variants are data: biases, tied
// output, rotary pairing, frequency factors, sliding window. Sources: Touvron et al. 2023 ("LLaMA",
// "Llama 2"); Qwen2 technical report 2024; tensor names as in GGUF files by llama.cpp's converter.
#include "model/llama.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "model/weight_reader.h"
#include "tensor/aligned_buffer.h"
#include "tensor/attention.h"
#include "tensor/dequantize.h"
#include "tensor/numerics.h"
#include "tensor/ops.h"
#include "tensor/weight_arena.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;
using tensor::PackedMatrix;

static_assert(kPageTokens == tensor::kPageTokens);

// How finely activations are rounded before each kind of product: part of the numerics id. Measured
// choice: docs/decisions/0001-activation-bits.md.
constexpr auto kAttentionBits = tensor::ActivationBits::k16;
constexpr auto kGateUpBits = tensor::ActivationBits::k16;
constexpr auto kDownBits = tensor::ActivationBits::k16;
constexpr auto kLogitsBits = tensor::ActivationBits::k16;

// ---- what a model may look like ----

Status CheckShape(const Config& config) {
  constexpr uint32_t kHeadDimMultiple = 16;  // of a KV page's planes
  const auto refuse = [&](std::string_view key, std::string why) {
    const std::string field = fmt::format("{}.{}", config.architecture, key);
    return base::Unsupported(fmt::format("{}: {}", field, why)).WithField(field);
  };
  if (config.head_dim % kHeadDimMultiple != 0) {
    return refuse("attention.key_length",
                  fmt::format("heads of {} are not supported (a multiple of "
                              "{} is needed)",
                              config.head_dim, kHeadDimMultiple));
  }
  // Qwen2 applies its window only to the upper layers, and the file does not say from which on.
  if (config.family == Family::kQwen2 && config.sliding_window != 0 &&
      config.sliding_window < config.context_max) {
    return refuse("attention.sliding_window", "not supported in this family");
  }
  return base::OkStatus();
}

// ---- the weights' names ----

std::string LayerName(uint32_t layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

std::vector<WeightSpec> Weights(const Config& config) {
  const uint64_t width = config.embedding;
  const uint64_t query_width = uint64_t{config.heads} * config.head_dim;
  const uint64_t key_width = uint64_t{config.kv_heads} * config.head_dim;
  std::vector<WeightSpec> specs = {
      {"token_embd.weight", config.vocabulary, width},
      {"output_norm.weight", 1, width},
      {"output.weight", config.vocabulary, width, true},
      {"rope_freqs.weight", 1, config.rope_dims / 2, true},
  };
  for (uint32_t i = 0; i < config.layers; ++i) {
    const auto add = [&](std::string_view name, uint64_t outputs, uint64_t inputs,
                         bool optional = false) {
      specs.push_back({LayerName(i, name), outputs, inputs, optional});
    };
    add("attn_norm.weight", 1, width);
    add("attn_q.weight", query_width, width);
    add("attn_k.weight", key_width, width);
    add("attn_v.weight", key_width, width);
    add("attn_q.bias", 1, query_width, !config.qkv_bias);
    add("attn_k.bias", 1, key_width, !config.qkv_bias);
    add("attn_v.bias", 1, key_width, !config.qkv_bias);
    add("attn_output.weight", width, query_width);
    add("attn_output.bias", 1, width, true);
    add("ffn_norm.weight", 1, width);
    add("ffn_gate.weight", config.feed_forward, width);
    add("ffn_up.weight", config.feed_forward, width);
    add("ffn_down.weight", width, config.feed_forward);
  }
  return specs;
}

struct Projection {
  PackedMatrix matrix;
  std::vector<float> bias;  // empty = none

  // bias.data() of an empty vector may be anything.
  const float* bias_or_null() const { return bias.empty() ? nullptr : bias.data(); }
};

struct Layer {
  std::vector<float> attention_norm;  // [embedding]
  Projection query;                   // [heads * head_dim, embedding]
  Projection key, value;              // [kv_heads * head_dim, embedding]
  Projection output;                  // [embedding, heads * head_dim]
  std::vector<float> feed_norm;       // [embedding]
  PackedMatrix gate, up;              // [feed_forward, embedding]
  PackedMatrix down;                  // [embedding, feed_forward]
};

// Rows of the embedding as the file stores them; expanded row by row when used.
struct EmbeddingTable {
  tensor::AlignedBuffer rows;
  tensor::DType type = tensor::DType::kF32;
  uint64_t row_bytes = 0;
};

struct LlamaWeights {
  tensor::WeightArena arena;  // of every matrix below, so it goes last
  EmbeddingTable embedding;
  std::vector<Layer> layers;
  std::vector<float> output_norm;
  PackedMatrix output;
  tensor::RotaryTable rotary;
  uint64_t resident_bytes = 0;
};

// ---- loading ----

Result<EmbeddingTable> LoadEmbedding(WeightReader& reader, const Config& config) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor,
                   reader.Raw("token_embd.weight", config.vocabulary, config.embedding));
  EmbeddingTable table;
  table.type = *tensor::DTypeFromGguf(tensor->type);  // Raw checked it
  ASSIGN_OR_RETURN(table.row_bytes, tensor::RowBytes(table.type, config.embedding));
  CHECK(table.row_bytes * config.vocabulary == tensor->bytes.size()) << tensor->bytes.size();
  // A copy, so that a file changed or cut under a running server cannot change or stop it.
  ASSIGN_OR_RETURN(table.rows, tensor::AlignedBuffer::Allocate(tensor->bytes.size()));
  std::copy(tensor->bytes.begin(), tensor->bytes.end(), table.rows.data());
  return table;
}

Result<Projection> LoadProjection(WeightReader& reader, const std::string& name, uint64_t outputs,
                                  uint64_t inputs) {
  Projection projection;
  ASSIGN_OR_RETURN(projection.matrix, reader.Matrix(name + ".weight", outputs, inputs));
  ASSIGN_OR_RETURN(projection.bias, reader.VectorIfAny(name + ".bias", outputs));
  return projection;
}

Result<Layer> LoadLayer(WeightReader& reader, const Config& config, uint32_t index) {
  const uint64_t width = config.embedding;
  const uint64_t query_width = uint64_t{config.heads} * config.head_dim;
  const uint64_t key_width = uint64_t{config.kv_heads} * config.head_dim;
  const auto name = [&](std::string_view part) { return LayerName(index, part); };
  Layer layer;
  ASSIGN_OR_RETURN(layer.attention_norm, reader.Vector(name("attn_norm.weight"), width));
  ASSIGN_OR_RETURN(layer.query, LoadProjection(reader, name("attn_q"), query_width, width));
  ASSIGN_OR_RETURN(layer.key, LoadProjection(reader, name("attn_k"), key_width, width));
  ASSIGN_OR_RETURN(layer.value, LoadProjection(reader, name("attn_v"), key_width, width));
  ASSIGN_OR_RETURN(layer.output, LoadProjection(reader, name("attn_output"), width, query_width));
  ASSIGN_OR_RETURN(layer.feed_norm, reader.Vector(name("ffn_norm.weight"), width));
  ASSIGN_OR_RETURN(layer.gate, reader.Matrix(name("ffn_gate.weight"), config.feed_forward, width));
  ASSIGN_OR_RETURN(layer.up, reader.Matrix(name("ffn_up.weight"), config.feed_forward, width));
  ASSIGN_OR_RETURN(layer.down, reader.Matrix(name("ffn_down.weight"), width, config.feed_forward));
  return layer;
}

Result<LlamaWeights> LoadWeights(const Checkpoint& gguf, const Config& config, uint32_t context_max,
                                 const LoadOptions& options) {
  LlamaWeights weights;
  WeightReader reader(gguf, options, weights.arena);
  ASSIGN_OR_RETURN(weights.embedding, LoadEmbedding(reader, config));
  weights.layers.reserve(config.layers);
  for (uint32_t i = 0; i < config.layers; ++i) {
    ASSIGN_OR_RETURN(Layer layer, LoadLayer(reader, config, i));
    weights.layers.push_back(std::move(layer));
  }
  ASSIGN_OR_RETURN(weights.output_norm, reader.Vector("output_norm.weight", config.embedding));
  ASSIGN_OR_RETURN(weights.output,
                   reader.Matrix(config.tied_output ? "token_embd.weight" : "output.weight",
                                 config.vocabulary, config.embedding));
  ASSIGN_OR_RETURN(const std::vector<float> factors,
                   reader.VectorIfAny("rope_freqs.weight", config.rope_dims / 2));
  ASSIGN_OR_RETURN(weights.rotary,
                   tensor::RotaryTable::Build({.dims = config.rope_dims,
                                               .positions_max = context_max,
                                               .base = config.rope_base,
                                               .position_scale = 1.0 / config.rope_scale,
                                               .frequency_factors = factors},
                                              options.pool));
  weights.resident_bytes = reader.resident_bytes() + weights.embedding.rows.size();
  return weights;
}

// Activations of one Forward, sized once. All f32, row-major.
struct Workspace {
  tensor::AlignedBuffer memory;
  float* hidden = nullptr;    // [rows, embedding], the residual stream
  float* normed = nullptr;    // [rows, embedding]
  float* queries = nullptr;   // [rows, heads, head_dim]
  float* keys = nullptr;      // [rows, kv_heads, head_dim]
  float* values = nullptr;    // [rows, kv_heads, head_dim]
  float* attended = nullptr;  // [rows, heads, head_dim]
  float* gate = nullptr;      // [rows, feed_forward]
  float* up = nullptr;        // [rows, feed_forward]
  float* final = nullptr;     // [logits rows, embedding]
  tensor::Activations quantised;
};

Result<Workspace> MakeWorkspace(const Config& config, const LoadOptions& options) {
  const uint64_t rows = options.rows_max;
  const uint64_t query_width = uint64_t{config.heads} * config.head_dim;
  const uint64_t key_width = uint64_t{config.kv_heads} * config.head_dim;
  Workspace work;
  const std::pair<float**, uint64_t> parts[] = {
      {&work.hidden, rows * config.embedding},
      {&work.normed, rows * config.embedding},
      {&work.queries, rows * query_width},
      {&work.keys, rows * key_width},
      {&work.values, rows * key_width},
      {&work.attended, rows * query_width},
      {&work.gate, rows * config.feed_forward},
      {&work.up, rows * config.feed_forward},
      {&work.final, uint64_t{options.logits_rows_max} * config.embedding},
  };
  constexpr uint64_t kAlignment = 16;  // floats
  const auto aligned = [](uint64_t count) {
    return (count + kAlignment - 1) / kAlignment * kAlignment;
  };
  uint64_t total = 0;
  for (const auto& [pointer, count] : parts) total += aligned(count);
  ASSIGN_OR_RETURN(work.memory, tensor::AlignedBuffer::Allocate(total * sizeof(float)));
  auto* next = reinterpret_cast<float*>(work.memory.data());
  for (const auto& [pointer, count] : parts) {
    *pointer = next;
    next += aligned(count);
  }
  const auto inputs_max = static_cast<uint32_t>(
      std::max({uint64_t{config.embedding}, query_width, uint64_t{config.feed_forward}}));
  ASSIGN_OR_RETURN(work.quantised, tensor::Activations::Allocate(options.rows_max, inputs_max));
  return work;
}

// ---- Forward ----

class LlamaModel final : public Model {
 public:
  LlamaModel(const Config& config, const LoadOptions& options, ModelInfo info, LlamaWeights weights,
             Workspace work)
      : config_(config),
        compute_{options.pool, options.kernels},
        rows_max_(options.rows_max),
        logits_rows_max_(options.logits_rows_max),
        layout_{config.layers, config.kv_heads, config.head_dim},
        attention_{config.heads, 1.0f / std::sqrt(static_cast<float>(config.head_dim)),
                   config.sliding_window},
        pairing_(config.rope_pairs == RotaryPairs::kAdjacent ? tensor::RotaryPairing::kAdjacent
                                                             : tensor::RotaryPairing::kHalves),
        info_(std::move(info)),
        weights_(std::move(weights)),
        work_(std::move(work)) {
    tokens_.reserve(rows_max_);
    positions_.reserve(rows_max_);
    sequences_.reserve(rows_max_);
  }

  const ModelInfo& info() const override { return info_; }
  uint32_t rows_max() const override { return rows_max_; }
  uint32_t logits_rows_max() const override { return logits_rows_max_; }

  void Forward(std::span<const SequenceRows> sequences, std::span<float> logits) override {
    Gather(sequences);
    Embed();
    for (uint32_t i = 0; i < config_.layers; ++i) {
      Attention(i, weights_.layers[i]);
      FeedForward(weights_.layers[i]);
    }
    Logits(sequences, logits);
  }

 private:
  uint32_t rows() const { return static_cast<uint32_t>(tokens_.size()); }

  // Flattens the batch, and checks it: after this, nothing below can leave its buffers.
  void Gather(std::span<const SequenceRows> sequences) {
    tokens_.clear();
    positions_.clear();
    sequences_.clear();
    for (const SequenceRows& sequence : sequences) {
      const uint64_t count = sequence.tokens.size();
      CHECK(count >= 1 && count <= rows_max_ - tokens_.size()) << count << " rows";
      const uint64_t end = sequence.position + count;
      CHECK(end <= info_.context_max) << end << " tokens, context " << info_.context_max;
      CHECK(end <= sequence.pages.size() * kPageTokens) << sequence.pages.size() << " pages";
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t token = base::Index(sequence.tokens[i]);
        CHECK(token < config_.vocabulary) << token;
        tokens_.push_back(token);
        positions_.push_back(sequence.position + i);
      }
      sequences_.push_back({sequence.pages, sequence.position, static_cast<uint32_t>(count)});
    }
    CHECK(!tokens_.empty());
  }

  void Embed() {
    const EmbeddingTable& table = weights_.embedding;
    compute_.pool.ParallelFor(rows(), [&](uint32_t row) {
      const std::span stored(table.rows.data() + tokens_[row] * table.row_bytes, table.row_bytes);
      const std::span out(work_.hidden + uint64_t{row} * config_.embedding, config_.embedding);
      const Status status = tensor::DequantizeRow(table.type, stored, out);
      DCHECK(status.ok()) << status.ToString();
    });
  }

  void Attention(uint32_t index, const Layer& layer) {
    Norm(work_.hidden, rows(), layer.attention_norm, work_.normed);
    Linear(work_.normed, rows(), config_.embedding, kAttentionBits,
           std::array<tensor::Product, 3>{
               {{&layer.query.matrix, work_.queries, layer.query.bias_or_null()},
                {&layer.key.matrix, work_.keys, layer.key.bias_or_null()},
                {&layer.value.matrix, work_.values, layer.value.bias_or_null()}}});
    Rotate(config_.heads, work_.queries);
    Rotate(config_.kv_heads, work_.keys);
    StoreKeysValues(compute_, layout_, index, sequences_, work_.keys, work_.values);
    Attend(compute_, layout_, index, attention_, sequences_, work_.queries, work_.attended);
    Linear(work_.attended, rows(), config_.heads * config_.head_dim, kAttentionBits,
           std::array<tensor::Product, 1>{
               {{&layer.output.matrix, work_.hidden, layer.output.bias_or_null(), true}}});
  }

  void FeedForward(const Layer& layer) {
    Norm(work_.hidden, rows(), layer.feed_norm, work_.normed);
    Linear(work_.normed, rows(), config_.embedding, kGateUpBits,
           std::array<tensor::Product, 2>{{{&layer.gate, work_.gate}, {&layer.up, work_.up}}});
    SwiGlu(compute_, work_.gate, work_.up, rows(), config_.feed_forward, work_.gate);
    Linear(work_.gate, rows(), config_.feed_forward, kDownBits,
           std::array<tensor::Product, 1>{{{&layer.down, work_.hidden, nullptr, true}}});
  }

  // Brings the wanted rows together, since most rows of a prompt need no logits.
  void Logits(std::span<const SequenceRows> sequences, std::span<float> logits) {
    uint32_t wanted = 0;
    uint64_t end = 0;  // row after the sequence's last
    for (const SequenceRows& sequence : sequences) {
      end += sequence.tokens.size();
      CHECK(sequence.logits_rows <= sequence.tokens.size()) << sequence.logits_rows;
      CHECK(sequence.logits_rows <= logits_rows_max_ - wanted) << "more logits rows than agreed";
      std::copy_n(work_.hidden + (end - sequence.logits_rows) * config_.embedding,
                  uint64_t{sequence.logits_rows} * config_.embedding,
                  work_.final + uint64_t{wanted} * config_.embedding);
      wanted += sequence.logits_rows;
    }
    CHECK(logits.size() == uint64_t{wanted} * config_.vocabulary) << logits.size();
    if (wanted == 0) return;
    Norm(work_.final, wanted, weights_.output_norm, work_.final);
    Linear(work_.final, wanted, config_.embedding, kLogitsBits,
           std::array<tensor::Product, 1>{{{&weights_.output, logits.data()}}});
  }

  void Norm(const float* x, uint32_t count, const std::vector<float>& weight, float* out) {
    RmsNorm(compute_, x, count, config_.embedding, weight.data(), config_.rms_epsilon, out);
  }
  void Rotate(uint32_t heads, float* x) {
    tensor::Rotate(compute_, weights_.rotary, pairing_, positions_, heads, config_.head_dim, x);
  }
  void Linear(const float* x, uint32_t count, uint32_t inputs, tensor::ActivationBits bits,
              std::span<const tensor::Product> products) {
    tensor::Linear(compute_, x, count, inputs, bits, work_.quantised, products);
  }

  const Config config_;
  const tensor::Compute compute_;
  const uint32_t rows_max_;
  const uint32_t logits_rows_max_;
  const tensor::KvLayout layout_;
  const tensor::AttentionShape attention_;
  const tensor::RotaryPairing pairing_;
  const ModelInfo info_;
  const LlamaWeights weights_;
  Workspace work_;
  // The batch at hand, flattened; [rows] each, sequences_ at most as many.
  std::vector<uint32_t> tokens_;
  std::vector<uint32_t> positions_;
  std::vector<tensor::AttentionSequence> sequences_;
};

}  // namespace

Status CheckLlama(const Checkpoint& gguf, const Config& config) {
  RETURN_IF_ERROR(CheckShape(config));
  return CheckWeights(gguf, Weights(config), config.architecture);
}

Result<std::unique_ptr<Model>> LoadLlama(const Checkpoint& gguf, const Config& config,
                                         const LoadOptions& options) {
  RETURN_IF_ERROR(CheckLlama(gguf, config));
  const uint32_t context_max = std::min(
      config.context_max, options.context_max != 0 ? options.context_max : kContextDefaultMax);
  ASSIGN_OR_RETURN(LlamaWeights weights, LoadWeights(gguf, config, context_max, options));
  ASSIGN_OR_RETURN(Workspace work, MakeWorkspace(config, options));
  ModelInfo info;
  info.architecture = config.architecture;
  info.name = config.name;
  info.vocabulary_size = config.vocabulary;
  info.context_max = context_max;
  info.page_bytes = tensor::KvLayout{config.layers, config.kv_heads, config.head_dim}.page_bytes();
  for (const GgufTensor& tensor : gguf.tensors()) info.parameters += tensor.elements;
  info.weight_bytes = weights.resident_bytes;
  info.numerics_id = fmt::format("{}-f16kv", tensor::kNumericsId);
  return std::unique_ptr<Model>(std::make_unique<LlamaModel>(config, options, std::move(info),
                                                             std::move(weights), std::move(work)));
}

}  // namespace plumb::model
