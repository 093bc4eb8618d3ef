// model/families/deepseek_v41_need.cc
// Sums over the tensors that deepseek_v41_weights.cc maps, written apart from it: a test holds the
// two against each other.
#include "model/families/deepseek_v41_need.h"

#include <algorithm>

#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_state.h"
#include "tensor/row_format.h"

namespace plumb::model {
namespace {

// Weights as counts and as bytes in the files.
struct Size {
  uint64_t parameters = 0;
  uint64_t bytes = 0;

  Size& operator+=(const Size& other) {
    parameters += other.parameters;
    bytes += other.bytes;
    return *this;
  }
  friend Size operator+(Size a, const Size& b) { return a += b; }
  friend Size operator*(uint64_t times, const Size& a) {
    return {times * a.parameters, times * a.bytes};
  }
};

Size F32(uint64_t count) { return {count, 4 * count}; }
Size Bf16(uint64_t count) { return {count, 2 * count}; }
Size F8(uint64_t outputs, uint64_t inputs) {
  return {outputs * inputs, outputs * inputs + (outputs + 31) / 32 * ((inputs + 31) / 32)};
}
Size F8Rows(uint64_t rows, uint64_t inputs) {
  return {rows * inputs, rows * (inputs + inputs / 32)};
}
Size F4(uint64_t outputs, uint64_t inputs) {
  return {outputs * inputs, outputs * (inputs / 2 + inputs / 32)};
}

Size Attention(const DeepseekConfig& c) {
  const uint64_t queries = uint64_t{c.heads} * c.head_dim;
  const uint64_t ranks = uint64_t{c.output_groups} * c.output_rank;
  return F8(c.query_rank, c.hidden) + Bf16(c.query_rank) + F8(queries, c.query_rank) +
         F8(c.head_dim, c.hidden) + Bf16(c.head_dim) + F32(c.heads) +
         F8(ranks, queries / c.output_groups) + F8(c.hidden, ranks);
}

Size Selection(const DeepseekConfig& c, const DeepseekLayer& layer) {
  Size size;
  if (layer.owns_kv) {
    const uint64_t matrices = layer.ratio > 1 ? 2 : 1;
    size += matrices * Bf16(uint64_t{c.head_dim} * c.hidden) + Bf16(c.head_dim) +
            Bf16(uint64_t{c.index_dim} * c.head_dim) + Bf16(c.index_dim);
  }
  if (layer.owns_index) {
    size += F8(uint64_t{c.index_heads} * c.index_dim, c.query_rank) +
            Bf16(uint64_t{c.index_heads} * c.hidden);
  }
  return size;
}

// Two mixes and two norms.
Size Streams(const DeepseekConfig& c) {
  const uint64_t m = c.streams;
  const uint64_t outputs = (2 + m) * m;
  return 2 * (F32(outputs * m * c.hidden) + F32(outputs) + F32(3) + Bf16(c.hidden));
}

Size Expert(const DeepseekConfig& c) {
  return 2 * F4(c.expert_width, c.hidden) + F4(c.hidden, c.expert_width);
}
// Router and shared expert.
Size FeedBase(const DeepseekConfig& c, uint64_t experts) {
  return Bf16(experts * c.hidden) + 2 * F32(experts) + 2 * F8(c.expert_width, c.hidden) +
         F8(c.hidden, c.expert_width);
}

uint64_t RowsPerToken(const DeepseekConfig& c) {
  return c.engram_layers.empty() ? 0 : (c.engram_ngram_max - uint64_t{1}) * c.engram_heads;
}

Size EngramBase(const DeepseekConfig& c) {
  return F8((c.streams + uint64_t{1}) * c.hidden, RowsPerToken(c) * c.engram_head_dim) +
         2 * Bf16(uint64_t{c.streams} * c.hidden);
}

Size Drafts(const DeepseekConfig& c) {
  if (c.draft_blocks == 0) return {};
  const Size block =
      Attention(c) + Streams(c) + FeedBase(c, c.draft_experts) + c.draft_experts * Expert(c);
  return c.draft_blocks * block + F8(c.hidden, c.draft_targets.size() * c.hidden) +
         2 * Bf16(c.hidden) + 2 * Bf16(uint64_t{c.vocabulary} * c.draft_rank) +
         Bf16(uint64_t{c.hidden} + c.draft_rank);
}

// The buffers that grow with the rows of a step: streams and queries, experts' inputs and widths.
uint64_t Workspace(const DeepseekConfig& c) {
  const uint64_t gathered = c.experts_used + uint64_t{1};
  const uint64_t floats = (c.streams + uint64_t{3}) * c.hidden + c.experts +
                          gathered * (c.hidden + 2 * uint64_t{c.expert_width}) +
                          uint64_t{c.index_heads} * c.index_dim + 4 * uint64_t{c.head_dim};
  return kDeepseekNeedRows * floats * sizeof(float);
}

}  // namespace

DeepseekNeed NeedOf(const DeepseekConfig& c, Roundings roundings) {
  const Size table = Bf16(uint64_t{c.vocabulary} * c.hidden);
  const Size experts = uint64_t{c.layer_count} * c.experts * Expert(c);
  Size dense = table + Bf16(c.hidden);  // head and norm; what every token reads whole
  for (const DeepseekLayer& layer : c.layers) {
    dense += Attention(c) + Selection(c, layer) + Streams(c) + FeedBase(c, c.experts);
    if (layer.engram != kNoLayer) dense += EngramBase(c);
  }
  Size tables;
  for (const uint64_t rows : c.engram_rows) tables += F8Rows(rows, c.engram_head_dim);
  const Size looked_up = c.engram_layers.size() * F8Rows(RowsPerToken(c), c.engram_head_dim);
  const Size chosen = uint64_t{c.layer_count} * c.experts_used * Expert(c);

  DeepseekNeed need;
  need.weight_bytes = (dense + experts + table).bytes;
  need.table_bytes = tables.bytes;
  need.expert_bytes = experts.bytes;
  need.draft_bytes = Drafts(c).bytes;
  need.parameters = (dense + experts + table + tables).parameters;
  need.active_parameters = (dense + chosen).parameters;
  need.active_weight_bytes = (dense + chosen + looked_up + Bf16(c.hidden)).bytes;
  need.table_row_bytes = looked_up.bytes;

  const DeepseekRoundings formats = RoundingsOf(roundings);
  const DeepseekLayout layout(c, formats, kBacktrackRows);
  for (const uint32_t source : c.KvSources()) {
    need.token_bytes +=
        kPageTokens / c.layers[source].ratio *
        (tensor::RowBytes(formats.main, c.head_dim) + tensor::RowBytes(formats.key, c.index_dim));
  }
  need.token_bytes /= kPageTokens;
  need.page_bytes = layout.page_bytes();
  need.state_bytes = layout.state_bytes();
  need.checkpoint_bytes = layout.checkpoint_bytes();
  need.workspace_bytes = Workspace(c);
  return need;
}

uint64_t DeepseekKvRead(const DeepseekConfig& c, uint64_t position, Roundings roundings) {
  const DeepseekRoundings formats = RoundingsOf(roundings);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < c.layer_count; ++i) {
    const DeepseekLayer& layer = c.layers[i];
    bytes +=
        std::min<uint64_t>(position + 1, c.window) * tensor::RowBytes(formats.window, c.head_dim);
    if (layer.ratio == 0) continue;
    const uint64_t rows = (position + 1) / layer.ratio;
    bytes += std::min<uint64_t>(rows, c.index_top) * tensor::RowBytes(formats.main, c.head_dim);
    if (!layer.owns_index) continue;
    // Behind the candidates' source only its blocks are scored.
    const bool limited = c.candidate_source != kNoLayer && i > c.candidate_source;
    const uint64_t scored =
        limited ? std::min(rows, uint64_t{c.candidate_blocks} * c.candidate_block_rows) : rows;
    bytes += scored * tensor::RowBytes(formats.key, c.index_dim);
  }
  return bytes;
}

}  // namespace plumb::model
