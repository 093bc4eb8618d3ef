// model/families/deepseek_engram.cc: rows are found for the whole step at its beginning; keys and
// values are computed in slices of rows, since they are wider than everything else of a row.
#include "model/families/deepseek_engram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace plumb::model {
namespace {

constexpr uint64_t kSliceBytes = 16 << 20;  // of keys and values computed at once
constexpr uint32_t kNgramMax = 16;
constexpr float kDotMin = 1e-6f;  // below it the gate's root is held

}  // namespace

DeepseekEngram::DeepseekEngram(const DeepseekConfig& config, const DeepseekRoundings& roundings,
                               const DeepseekLayout& layout, EngramAddresses addresses)
    : config_(&config),
      roundings_(roundings),
      layout_(&layout),
      addresses_(std::move(addresses)),
      width_(addresses_.rows_per_token() * config.engram_head_dim) {}

base::Result<DeepseekEngram> DeepseekEngram::Create(const DeepseekConfig& config,
                                                    const DeepseekRoundings& roundings,
                                                    const DeepseekLayout& layout,
                                                    EngramAddresses addresses, uint32_t rows_max) {
  DeepseekEngram self(config, roundings, layout, std::move(addresses));
  self.rows_max_ = rows_max;
  if (config.engram_layers.empty()) return self;
  CHECK(config.engram_ngram_max <= kNgramMax) << config.engram_ngram_max;
  const uint64_t outputs = uint64_t{config.streams + 1} * config.hidden;
  self.slice_rows_ = static_cast<uint32_t>(
      std::clamp<uint64_t>(kSliceBytes / (outputs * sizeof(float)), 1, rows_max));
  ASSIGN_OR_RETURN(self.ids_,
                   Scratch<uint64_t>::Allocate(config.engram_layers.size() * uint64_t{rows_max} *
                                               self.addresses_.rows_per_token()));
  ASSIGN_OR_RETURN(self.ahead_, Scratch<uint64_t>::Allocate(self.addresses_.rows_per_token()));
  ASSIGN_OR_RETURN(self.looked_,
                   Scratch<float>::Allocate(uint64_t{self.slice_rows_} * self.width_));
  ASSIGN_OR_RETURN(self.products_, Scratch<float>::Allocate(self.slice_rows_ * outputs));
  return self;
}

void DeepseekEngram::Find(const SequenceRows& sequence, uint32_t position, uint32_t place,
                          std::span<uint64_t> rows) const {
  const auto token_at = [&](uint32_t at) {
    if (at < sequence.position) return layout_->Token(sequence.state, at);
    const size_t i = at - sequence.position, count = sequence.tokens.size();
    return i < count ? sequence.tokens[i] : sequence.upcoming[i - count];
  };
  std::array<TokenId, kNgramMax> recent;  // the token itself, then those before it
  const uint32_t count = std::min(addresses_.ngram_max(), position + 1);
  for (uint32_t back = 0; back < count; ++back) recent[back] = token_at(position - back);
  addresses_.RowsOf(place, std::span(recent).first(count), rows);
}

void DeepseekEngram::AskAhead(const SequenceRows& sequence, uint32_t place,
                              const EngramTable& table) {
  const uint32_t end = sequence.position + static_cast<uint32_t>(sequence.tokens.size());
  for (uint32_t i = 0; i < sequence.upcoming.size(); ++i) {
    const std::span<uint64_t> ids(ahead_.data(), addresses_.rows_per_token());
    Find(sequence, end + i, place, ids);
    PrefetchRows(table, ids);
  }
}

void DeepseekEngram::Begin(const DeepseekBatch& batch, const DeepseekWeights& weights) {
  const uint32_t per_token = addresses_.rows_per_token();
  const auto places = static_cast<uint32_t>(config_->engram_layers.size());
  for (uint32_t place = 0; place < places; ++place) {
    uint64_t* ids = ids_.data() + uint64_t{place} * rows_max_ * per_token;
    for (uint32_t row = 0; row < batch.rows(); ++row) {
      Find(batch.sequence_of(row), batch.row(row).position, place,
           {ids + uint64_t{row} * per_token, per_token});
    }
    PrefetchRows(weights.layers[config_->engram_layers[place]].engram.table,
                 {ids, uint64_t{batch.rows()} * per_token});
  }
  for (uint32_t place = 0; place < places; ++place) {
    const EngramTable& table = weights.layers[config_->engram_layers[place]].engram.table;
    if (!IsPrefetched(table)) continue;
    for (const SequenceRows& sequence : batch.sequences()) AskAhead(sequence, place, table);
  }
}

std::span<const uint64_t> DeepseekEngram::RowsOf(uint32_t place, uint32_t origin) const {
  const uint32_t per_token = addresses_.rows_per_token();
  return {ids_.data() + (uint64_t{place} * rows_max_ + origin) * per_token, per_token};
}

void DeepseekEngram::Look(tensor::Compute compute, const DeepseekBatch& batch, uint32_t place,
                          const EngramWeights& weights, uint32_t first, uint32_t count) {
  const uint32_t head_dim = config_->engram_head_dim;
  ForEachRow(compute, count, width_, [&](uint32_t i) {
    float* out = looked_.data() + uint64_t{i} * width_;
    for (const uint64_t id : RowsOf(place, batch.row(first + i).origin)) {
      tensor::BlockRow(weights.table.Row(id), 0, out);
      out += head_dim;
    }
  });
  RoundInputs(compute, roundings_, weights.kv, count, width_, looked_.data());
  Multiply(compute, weights.kv, looked_.data(), count, products_.data());
  RoundActivations(compute, roundings_, count, uint64_t{config_->streams + 1} * config_->hidden,
                   products_.data());
}

void DeepseekEngram::Gate(const EngramWeights& weights, const float* keys_and_value,
                          float* streams) const {
  const uint64_t hidden = config_->hidden;
  const auto n = static_cast<float>(hidden);
  const float* value = keys_and_value + config_->streams * hidden;
  const float scale = 1.0f / std::sqrt(n);
  for (uint32_t k = 0; k < config_->streams; ++k) {
    float* x = streams + k * hidden;
    const float* key = keys_and_value + k * hidden;
    const float* weight = weights.query_key.data() + k * hidden;
    float lanes[16] = {};
    for (uint64_t i = 0; i < hidden; i += 16) {
      for (uint32_t lane = 0; lane < 16; ++lane) {
        const float product = (x[i + lane] * weight[i + lane]) * key[i + lane];
        lanes[lane] = lanes[lane] + product;
      }
    }
    const float x_inverse = 1.0f / std::sqrt(SumOfSquares(x, hidden) / n + config_->rms_epsilon);
    const float key_inverse =
        1.0f / std::sqrt(SumOfSquares(key, hidden) / n + config_->rms_epsilon);
    const float dot = FoldLanes(lanes) * x_inverse * key_inverse * scale;
    const float root = std::sqrt(std::max(std::abs(dot), kDotMin));
    const float gate = Sigmoid(std::copysign(root, dot));
    for (uint64_t i = 0; i < hidden; ++i) x[i] = x[i] + gate * value[i];
  }
}

void DeepseekEngram::Add(tensor::Compute compute, const DeepseekBatch& batch, uint32_t place,
                         const EngramWeights& weights, float* streams) {
  const uint64_t width = uint64_t{config_->streams} * config_->hidden;
  const uint64_t outputs = width + config_->hidden;
  for (uint32_t first = 0; first < batch.rows(); first += slice_rows_) {
    const uint32_t count = std::min(slice_rows_, batch.rows() - first);
    Look(compute, batch, place, weights, first, count);
    ForEachRow(compute, count, outputs, [&](uint32_t i) {
      Gate(weights, products_.data() + i * outputs, streams + (first + i) * width);
    });
  }
  RoundActivations(compute, roundings_, batch.rows(), width, streams);
}

}  // namespace plumb::model
