// model/layers_weights.cc: names and shapes once for the check and once for the reading, side by
// side.
#include "model/layers_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "tensor/dtype.h"

namespace plumb::model {

using base::Result;
using base::Status;

std::string LayerName(uint32_t layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

uint64_t QueryWidth(const Config& config) { return uint64_t{config.heads} * config.head_dim; }
uint64_t KeyWidth(const Config& config) { return uint64_t{config.kv_heads} * config.head_dim; }

// ---- what stands around the layers ----

void ExpectOuter(const Config& config, std::vector<WeightSpec>& specs) {
  specs.push_back({"token_embd.weight", config.vocabulary, config.embedding});
  specs.push_back({"output_norm.weight", 1, config.embedding});
  specs.push_back({"output.weight", config.vocabulary, config.embedding, true});
  specs.push_back({"rope_freqs.weight", 1, config.rope_dims / 2, true});
}

bool RowsSurvivePacking(tensor::DType type) { return type != tensor::DType::kBF16; }

Result<EmbeddingTable> LoadEmbedding(WeightReader& reader, const Config& config) {
  ASSIGN_OR_RETURN(const GgufTensor* tensor,
                   reader.Raw("token_embd.weight", config.vocabulary, config.embedding));
  EmbeddingTable table;
  // Tied to the output, whose packed rows can be read back: not held twice.
  if (config.tied_output && RowsSurvivePacking(*tensor::DTypeFromGguf(tensor->type))) return table;
  table.type = *tensor::DTypeFromGguf(tensor->type);  // Raw checked it
  ASSIGN_OR_RETURN(table.row_bytes, tensor::RowBytes(table.type, config.embedding));
  CHECK(table.row_bytes * config.vocabulary == tensor->bytes.size()) << tensor->bytes.size();
  // A copy, so that a file changed or cut under a running server cannot change or stop it.
  ASSIGN_OR_RETURN(table.rows, tensor::AlignedBuffer::Allocate(tensor->bytes.size()));
  std::copy(tensor->bytes.begin(), tensor->bytes.end(), table.rows.data());
  return table;
}

Status FinishOuter(WeightReader& reader, const Config& config, OuterWeights& outer) {
  ASSIGN_OR_RETURN(outer.output_norm, reader.Vector("output_norm.weight", config.embedding));
  ASSIGN_OR_RETURN(outer.output,
                   reader.Matrix(config.tied_output ? "token_embd.weight" : "output.weight",
                                 config.vocabulary, config.embedding));
  ASSIGN_OR_RETURN(outer.rope_factors,
                   reader.VectorIfAny("rope_freqs.weight", config.rope_dims / 2));
  outer.resident_bytes = reader.resident_bytes() + outer.embedding.rows.size();
  return base::OkStatus();
}

// ---- layers ----

void ExpectVector(uint32_t layer, std::string_view name, uint64_t size,
                  std::vector<WeightSpec>& specs) {
  specs.push_back({LayerName(layer, name), 1, size});
}

void ExpectAttention(const Config& config, HeadNorms norms, uint32_t layer,
                     std::vector<WeightSpec>& specs) {
  const auto add = [&](std::string_view name, uint64_t outputs, uint64_t inputs) {
    specs.push_back({LayerName(layer, name), outputs, inputs});
  };
  const uint64_t width = config.embedding;
  add("attn_q.weight", QueryWidth(config), width);
  add("attn_k.weight", KeyWidth(config), width);
  add("attn_v.weight", KeyWidth(config), width);
  if (config.qkv_bias) {
    add("attn_q.bias", 1, QueryWidth(config));
    add("attn_k.bias", 1, KeyWidth(config));
    add("attn_v.bias", 1, KeyWidth(config));
  }
  add("attn_output.weight", width, QueryWidth(config));
  if (config.output_bias) add("attn_output.bias", 1, width);
  if (norms == HeadNorms::kNo) return;
  add("attn_q_norm.weight", 1, config.head_dim);
  add("attn_k_norm.weight", 1, config.head_dim);
}

namespace {

Result<Projection> LoadProjection(WeightReader& reader, const std::string& name, uint64_t outputs,
                                  uint64_t inputs) {
  Projection projection;
  ASSIGN_OR_RETURN(projection.matrix, reader.Matrix(name + ".weight", outputs, inputs));
  ASSIGN_OR_RETURN(projection.bias, reader.VectorIfAny(name + ".bias", outputs));
  return projection;
}

}  // namespace

Result<AttentionWeights> LoadAttention(WeightReader& reader, const Config& config, HeadNorms norms,
                                       uint32_t layer) {
  const auto load = [&](std::string_view part, uint64_t outputs, uint64_t inputs) {
    return LoadProjection(reader, LayerName(layer, part), outputs, inputs);
  };
  const auto norm = [&](std::string_view part) {
    return reader.Vector(LayerName(layer, part), config.head_dim);
  };
  const uint64_t width = config.embedding;
  AttentionWeights weights;
  ASSIGN_OR_RETURN(weights.query, load("attn_q", QueryWidth(config), width));
  ASSIGN_OR_RETURN(weights.key, load("attn_k", KeyWidth(config), width));
  ASSIGN_OR_RETURN(weights.value, load("attn_v", KeyWidth(config), width));
  ASSIGN_OR_RETURN(weights.output, load("attn_output", width, QueryWidth(config)));
  if (norms == HeadNorms::kNo) return weights;
  ASSIGN_OR_RETURN(weights.query_norm, norm("attn_q_norm.weight"));
  ASSIGN_OR_RETURN(weights.key_norm, norm("attn_k_norm.weight"));
  return weights;
}

void ExpectGated(const Config& config, uint32_t layer, std::vector<WeightSpec>& specs) {
  const uint64_t width = config.embedding;
  specs.push_back({LayerName(layer, "ffn_gate.weight"), config.feed_forward, width});
  specs.push_back({LayerName(layer, "ffn_up.weight"), config.feed_forward, width});
  specs.push_back({LayerName(layer, "ffn_down.weight"), width, config.feed_forward});
}

Result<GatedWeights> LoadGated(WeightReader& reader, const Config& config, uint32_t layer) {
  const auto load = [&](std::string_view part, uint64_t outputs, uint64_t inputs) {
    return reader.Matrix(LayerName(layer, part), outputs, inputs);
  };
  GatedWeights weights;
  ASSIGN_OR_RETURN(weights.gate, load("ffn_gate.weight", config.feed_forward, config.embedding));
  ASSIGN_OR_RETURN(weights.up, load("ffn_up.weight", config.feed_forward, config.embedding));
  ASSIGN_OR_RETURN(weights.down, load("ffn_down.weight", config.embedding, config.feed_forward));
  return weights;
}

}  // namespace plumb::model
