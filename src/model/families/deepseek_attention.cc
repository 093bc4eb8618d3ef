// model/families/deepseek_attention.cc: what is as wide as all heads together is computed in slices
// of rows, so that scratch stays bounded however long the step is.
#include "model/families/deepseek_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace plumb::model {
namespace {

constexpr uint64_t kSliceBytes = 64 << 20;  // of queries and outputs computed at once

}  // namespace

base::Result<DeepseekAttentionLayer> DeepseekAttentionLayer::Create(
    const DeepseekConfig& config, const DeepseekRoundings& roundings, const DeepseekLayout& layout,
    const DeepseekLimits& limits, DeepseekObserver* observer) {
  DeepseekAttentionLayer self(config, roundings, layout, observer);
  ASSIGN_OR_RETURN(self.selection_,
                   DeepseekSelection::Create(config, roundings, layout, limits, observer));
  const uint64_t rows = limits.rows_max;
  const uint64_t width = uint64_t{config.heads} * config.head_dim;
  const uint64_t grouped = uint64_t{config.output_groups} * config.output_rank;
  self.slice_rows_ = static_cast<uint32_t>(
      std::clamp<uint64_t>(kSliceBytes / (2 * width * sizeof(float)), 1, rows));
  self.keys_max_ = config.window + config.index_top;
  const uint64_t slice = self.slice_rows_;
  ASSIGN_OR_RETURN(self.window_rows_,
                   Scratch<std::byte>::Allocate(rows * layout.window_row_bytes()));
  ASSIGN_OR_RETURN(self.rounded_,
                   Scratch<float>::Allocate(roundings.activations ? rows * config.hidden : 0));
  ASSIGN_OR_RETURN(self.low_, Scratch<float>::Allocate(rows * config.query_rank));
  ASSIGN_OR_RETURN(self.kv_, Scratch<float>::Allocate(rows * config.head_dim));
  ASSIGN_OR_RETURN(self.queries_, Scratch<float>::Allocate(slice * width));
  ASSIGN_OR_RETURN(self.attended_, Scratch<float>::Allocate(slice * width));
  ASSIGN_OR_RETURN(self.grouped_, Scratch<float>::Allocate(slice * grouped));
  ASSIGN_OR_RETURN(self.keys_, Scratch<const std::byte*>::Allocate(slice * self.keys_max_));
  self.made_.reserve(rows);
  self.gathered_.resize(slice);
  self.group_products_.resize(config.output_groups);
  return self;
}

void DeepseekAttentionLayer::MakeWindowRows(tensor::Compute compute, const DeepseekRotary& rotary,
                                            const DeepseekBatch& batch, uint32_t layer,
                                            const DeepseekAttention& weights, const float* hidden) {
  const uint32_t rows = batch.rows();
  const uint32_t n = config_->head_dim;
  const RotaryKind kind =
      config_->layers[layer].ratio == 0 ? RotaryKind::kWindow : RotaryKind::kCompress;
  const float* input = RoundedInputs(compute, roundings_, weights.kv, rows, config_->hidden, hidden,
                                     rounded_.data());
  Multiply(compute, weights.kv, input, rows, kv_.data());
  ForEachRow(compute, rows, 4 * uint64_t{n}, [&](uint32_t row) {
    float* kv = kv_.data() + uint64_t{row} * n;
    const auto round = [&] {
      if (roundings_.activations) tensor::RoundToBf16(compute.kernels, {kv, n});
    };
    round();
    compute.kernels.rms_norm(kv, weights.kv_norm.data(), config_->rms_epsilon, n, kv);
    round();
    rotary.RotateLast(compute.kernels, rotary.Row(kind, batch.row(row).origin), 1, n, kv);
    round();
  });
  if (observer_ != nullptr) {
    observer_->Values(DeepseekStage::kWindowRows, layer, {kv_.data(), uint64_t{rows} * n});
  }
  ForEachRow(compute, rows, 4 * uint64_t{n}, [&](uint32_t row) {
    tensor::EncodeRow(compute.kernels, roundings_.window, {kv_.data() + uint64_t{row} * n, n},
                      window_rows_.data() + row * layout_->window_row_bytes());
  });
  made_.assign(batch.parts().begin(), batch.parts().end());
}

const std::byte* DeepseekAttentionLayer::WindowRow(const DeepseekBatch& batch, uint32_t layer,
                                                   uint32_t sequence, uint32_t position) const {
  const DeepseekPart& made = made_[sequence];
  if (position < made.position) {
    return layout_->WindowRow(batch.sequences()[sequence].state, layer, position);
  }
  const uint64_t row = made.first + (position - made.position);
  return window_rows_.data() + row * layout_->window_row_bytes();
}

// Fills gathered_[i] with the keys of row slice.first + i: window, then selection.
void DeepseekAttentionLayer::ListKeys(const DeepseekBatch& batch, uint32_t layer, Slice slice,
                                      uint32_t i) {
  const uint32_t row = slice.first + i;
  const uint32_t sequence = batch.row(row).sequence;
  const SequenceRows& owner = batch.sequences()[sequence];
  const DeepseekLayer& shape = config_->layers[layer];
  const uint64_t width = uint64_t{config_->heads} * config_->head_dim;
  const std::byte** keys = keys_.data() + uint64_t{i} * keys_max_;

  const uint32_t end = batch.row(row).position + 1;
  const uint32_t floor = layer >= config_->decoder_begin ? owner.replay_from : 0;
  const uint32_t begin = std::max(end - std::min(end, config_->window), floor);
  uint32_t window = 0;
  for (uint32_t position = begin; position < end; ++position) {
    keys[window++] = WindowRow(batch, layer, sequence, position);
  }
  uint32_t count = window;
  if (shape.ratio > 0) {
    for (const uint32_t index : selection_.Chosen(row)) {
      keys[count++] = layout_->MainRow(shape.kv_source, owner.pages, index);
    }
  }
  gathered_[i] = {.query = queries_.data() + i * width,
                  .out = attended_.data() + i * width,
                  .window = {keys, window},
                  .selected = {keys + window, count - window}};
}

void DeepseekAttentionLayer::AttendSlice(tensor::Compute compute, const DeepseekRotary& rotary,
                                         const DeepseekBatch& batch, uint32_t layer,
                                         const DeepseekAttention& weights, Slice slice) {
  const uint64_t width = uint64_t{config_->heads} * config_->head_dim;
  const RotaryKind kind =
      config_->layers[layer].ratio == 0 ? RotaryKind::kWindow : RotaryKind::kCompress;
  const auto angles = [&](uint32_t i) {
    return rotary.Row(kind, batch.row(slice.first + i).origin);
  };
  const auto round = [&](float* x) {
    if (roundings_.activations) tensor::RoundToBf16(compute.kernels, {x, width});
  };
  Multiply(compute, weights.query_b, low_.data() + uint64_t{slice.first} * config_->query_rank,
           slice.count, queries_.data());
  ForEachRow(compute, slice.count, width, [&](uint32_t i) {
    float* query = queries_.data() + i * width;
    round(query);
    rotary.RotateLast(compute.kernels, angles(i), config_->heads, config_->head_dim, query);
    round(query);
    ListKeys(batch, layer, slice, i);
  });
  const double scale = 1.0 / std::sqrt(static_cast<double>(config_->head_dim));
  const tensor::GatheredShape shape = {.heads = config_->heads,
                                       .head_dim = config_->head_dim,
                                       .scale = static_cast<float>(scale),
                                       .sinks = weights.sinks.data(),
                                       .window = roundings_.window,
                                       .selected = roundings_.main};
  tensor::AttendGathered(compute, shape, std::span(gathered_).first(slice.count));
  ForEachRow(compute, slice.count, width, [&](uint32_t i) {
    float* out = attended_.data() + i * width;
    round(out);
    rotary.RotateLastBack(compute.kernels, angles(i), config_->heads, config_->head_dim, out);
    round(out);
  });
}

// Heads are grouped consecutively; a group's outputs meet their own rows of output_a.
void DeepseekAttentionLayer::ProjectOutput(tensor::Compute compute,
                                           const DeepseekAttention& weights, uint32_t rows,
                                           float* out) {
  const uint64_t width = uint64_t{config_->heads} * config_->head_dim;
  const uint64_t grouped = uint64_t{config_->output_groups} * config_->output_rank;
  RoundInputs(compute, roundings_, weights.output_a, rows, width, attended_.data());
  for (uint32_t group = 0; group < config_->output_groups; ++group) {
    const uint32_t first = group * config_->output_rank;
    group_products_[group] = {.matrix = weights.output_a.Rows(first, config_->output_rank),
                              .x = attended_.data() + group * (width / config_->output_groups),
                              .x_stride = width,
                              .rows = rows,
                              .out = grouped_.data() + first,
                              .out_stride = grouped};
  }
  tensor::BlockLinear(compute, group_products_);
  RoundActivations(compute, roundings_, rows, grouped, grouped_.data());
  RoundInputs(compute, roundings_, weights.output_b, rows, grouped, grouped_.data());
  Multiply(compute, weights.output_b, grouped_.data(), rows, out);
  RoundActivations(compute, roundings_, rows, config_->hidden, out);
}

void DeepseekAttentionLayer::Attend(tensor::Compute compute, const DeepseekRotary& rotary,
                                    const DeepseekBatch& batch, uint32_t layer,
                                    const DeepseekAttention& weights, const float* hidden,
                                    float* out) {
  const uint32_t rows = batch.rows();
  const uint32_t rank = config_->query_rank;
  const float* input = RoundedInputs(compute, roundings_, weights.query_a, rows, config_->hidden,
                                     hidden, rounded_.data());
  Multiply(compute, weights.query_a, input, rows, low_.data());
  RoundActivations(compute, roundings_, rows, rank, low_.data());
  RmsNorm(compute, low_.data(), rows, rank, weights.query_norm.data(), config_->rms_epsilon,
          low_.data());
  RoundActivations(compute, roundings_, rows, rank, low_.data());
  // Both matrices that read it are of one format.
  RoundInputs(compute, roundings_, weights.query_b, rows, rank, low_.data());
  if (config_->layers[layer].owns_index) {
    selection_.Choose(
        compute, rotary, batch,
        {.layer = layer, .weights = &weights.indexer, .hidden = hidden, .queries = low_.data()});
  }
  for (uint32_t first = 0; first < rows; first += slice_rows_) {
    const Slice slice = {first, std::min(slice_rows_, rows - first)};
    AttendSlice(compute, rotary, batch, layer, weights, slice);
    ProjectOutput(compute, weights, slice.count, out + uint64_t{first} * config_->hidden);
  }
}

void DeepseekAttentionLayer::KeepWindowRows(const DeepseekBatch& batch, uint32_t layer) const {
  const uint64_t size = layout_->window_row_bytes();
  for (size_t i = 0; i < made_.size(); ++i) {
    const DeepseekPart& part = made_[i];
    for (uint32_t back = std::min(part.count, layout_->window_slots()); back >= 1; --back) {
      const uint64_t row = part.first + part.count - back;
      std::memcpy(layout_->WindowRow(batch.sequences()[i].state, layer, part.end() - back),
                  window_rows_.data() + row * size, size);
    }
  }
}

}  // namespace plumb::model
