// model/families/deepseek_v41_need.cc
// Sums over the tensors that deepseek_v41_weights.cc maps, written apart from it: a test holds the
// two against each other.
#include "model/families/deepseek_v41_need.h"

#include <algorithm>
#include <cmath>

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

Size Compressor(const DeepseekConfig& c, const DeepseekLayer& layer) {
  if (!layer.owns_kv) return {};
  const uint64_t matrices = layer.ratio > 1 ? 2 : 1;
  return matrices * Bf16(uint64_t{c.head_dim} * c.hidden) + Bf16(c.head_dim) +
         Bf16(uint64_t{c.index_dim} * c.head_dim) + Bf16(c.index_dim);
}

Size Indexer(const DeepseekConfig& c, const DeepseekLayer& layer) {
  if (!layer.owns_index) return {};
  return F8(uint64_t{c.index_heads} * c.index_dim, c.query_rank) +
         Bf16(uint64_t{c.index_heads} * c.hidden);
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

// What the row at `position` sees in a layer.
struct KeysSeen {
  uint64_t window = 0;
  uint64_t main = 0;    // selected main rows
  uint64_t scored = 0;  // index keys
};
KeysSeen KeysOf(const DeepseekConfig& c, uint32_t index, uint64_t position, uint64_t replay_from) {
  const DeepseekLayer& layer = c.layers[index];
  const uint64_t floor = index >= c.decoder_begin ? std::min(replay_from, position) : 0;
  KeysSeen keys;
  keys.window = std::min<uint64_t>(position + 1 - floor, c.window);
  if (layer.ratio == 0) return keys;
  const uint64_t rows = (position + 1) / layer.ratio;
  keys.main = std::min<uint64_t>(rows, c.index_top);
  if (!layer.owns_index) return keys;
  // Behind the candidates' source only its blocks are scored.
  const bool limited = c.candidate_source != kNoLayer && index > c.candidate_source;
  keys.scored =
      limited ? std::min(rows, uint64_t{c.candidate_blocks} * c.candidate_block_rows) : rows;
  return keys;
}

// Adds up a step, layer by layer, as rows end (DeepseekBatch).
class StepCounter {
 public:
  StepCounter(const DeepseekConfig& config, const DeepseekStep& step,
              const DeepseekRoundings& formats, DeepseekWork& work)
      : c_(config), step_(step), formats_(formats), work_(work), alive_(step.rows) {}

  void Layer(uint32_t index) {
    const DeepseekLayer& layer = c_.layers[index];
    if (layer.engram != kNoLayer) {
      Meet(EngramBase(c_), alive_);
      work_.row_bytes += static_cast<double>(step_.sequences * alive_ *
                                             F8Rows(RowsPerToken(c_), c_.engram_head_dim).bytes);
    }
    Meet(Compressor(c_, layer), alive_);
    const uint64_t end = step_.position + step_.rows;
    if (index == c_.decoder_begin) {
      alive_ = std::min(step_.rows, end - std::min(end, step_.replay_from));
    }
    const Size window = F8(c_.head_dim, c_.hidden);
    Meet(window, alive_);
    if (index + 1 == c_.layer_count) alive_ = step_.logits_rows;
    if (alive_ == 0) return;
    Size rest = Attention(c_) + Indexer(c_, layer) + Streams(c_) + FeedBase(c_, c_.experts);
    rest.parameters -= window.parameters;
    rest.bytes -= window.bytes;
    Meet(rest, alive_);
    Experts();
    Keys(index, end);
  }

  // Embedding and head.
  void Ends() {
    work_.row_bytes += static_cast<double>(step_.sequences * step_.rows * Bf16(c_.hidden).bytes);
    Meet(Bf16(uint64_t{c_.vocabulary} * c_.hidden) + Bf16(c_.hidden), step_.logits_rows);
  }

 private:
  // `rows` of each sequence are multiplied with matrices of this size.
  void Meet(const Size& size, uint64_t rows) {
    if (rows == 0) return;
    work_.operations += 2.0 * static_cast<double>(step_.sequences * rows * size.parameters);
    work_.weight_bytes += static_cast<double>(size.bytes);
  }

  void Experts() {
    const Size expert = Expert(c_);
    const auto rows = static_cast<double>(step_.sequences * alive_);
    const auto experts = static_cast<double>(c_.experts);
    const double missed = std::pow(1 - c_.experts_used / experts, rows);
    work_.operations += 2 * rows * c_.experts_used * static_cast<double>(expert.parameters);
    work_.weight_bytes += experts * (1 - missed) * static_cast<double>(expert.bytes);
  }

  void Keys(uint32_t index, uint64_t end) {
    uint64_t attended = 0, scored = 0;
    for (uint64_t position = end - alive_; position < end; ++position) {
      const KeysSeen keys = KeysOf(c_, index, position, step_.replay_from);
      attended += keys.window + keys.main;
      scored += keys.scored;
    }
    const uint64_t multiply_adds =
        attended * 2 * c_.heads * c_.head_dim + scored * c_.index_heads * uint64_t{c_.index_dim};
    work_.operations += 2.0 * static_cast<double>(step_.sequences * multiply_adds);
    // Windows of neighbours overlap, and main rows and index keys are the same ones.
    const KeysSeen last = KeysOf(c_, index, end - 1, step_.replay_from);
    const KeysSeen first = KeysOf(c_, index, end - alive_, step_.replay_from);
    const uint64_t visible = c_.layers[index].ratio == 0 ? 0 : end / c_.layers[index].ratio;
    const uint64_t windows = first.window + alive_ - 1;
    const uint64_t mains = std::min(visible, alive_ * c_.index_top);
    work_.kv_bytes += static_cast<double>(
        step_.sequences * (windows * tensor::RowBytes(formats_.window, c_.head_dim) +
                           mains * tensor::RowBytes(formats_.main, c_.head_dim) +
                           last.scored * tensor::RowBytes(formats_.key, c_.index_dim)));
  }

  const DeepseekConfig& c_;
  const DeepseekStep step_;
  const DeepseekRoundings formats_;
  DeepseekWork& work_;
  uint64_t alive_;  // rows of each sequence
};

}  // namespace

DeepseekNeed NeedOf(const DeepseekConfig& c, Roundings roundings) {
  const Size table = Bf16(uint64_t{c.vocabulary} * c.hidden);
  const Size experts = uint64_t{c.layer_count} * c.experts * Expert(c);
  Size dense = table + Bf16(c.hidden);  // head and norm; what every token reads whole
  for (const DeepseekLayer& layer : c.layers) {
    dense += Attention(c) + Compressor(c, layer) + Indexer(c, layer) + Streams(c) +
             FeedBase(c, c.experts);
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

DeepseekWork DeepseekWorkOf(const DeepseekConfig& c, const DeepseekStep& step,
                            Roundings roundings) {
  DeepseekWork work;
  StepCounter counter(c, step, RoundingsOf(roundings), work);
  for (uint32_t i = 0; i < c.layer_count; ++i) counter.Layer(i);
  counter.Ends();
  return work;
}

}  // namespace plumb::model
