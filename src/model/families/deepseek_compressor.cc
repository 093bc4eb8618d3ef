// model/families/deepseek_compressor.cc: products for all rows, then group by group: a softmax over
// the group's tokens in each channel, norm, rotation to the group's first position, storage.
#include "model/families/deepseek_compressor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "tensor/exact_math.h"
#include "tensor/row_format.h"

namespace plumb::model {
namespace {

constexpr uint32_t kRatioMax = 8;
constexpr uint32_t kExpCost = 16;  // of an exp, in values of simpler loops

}  // namespace

base::Result<DeepseekCompressor> DeepseekCompressor::Create(const DeepseekConfig& config,
                                                            const DeepseekRoundings& roundings,
                                                            const DeepseekLayout& layout,
                                                            uint32_t rows_max) {
  DeepseekCompressor self(config, roundings, layout);
  for (const DeepseekLayer& layer : config.layers) CHECK(layer.ratio <= kRatioMax) << layer.ratio;
  const uint64_t wide = uint64_t{rows_max} * config.head_dim;
  self.groups_.reserve(rows_max);
  for (Scratch<float>* rows : {&self.values_, &self.gates_, &self.latents_, &self.mains_}) {
    ASSIGN_OR_RETURN(*rows, Scratch<float>::Allocate(wide));
  }
  ASSIGN_OR_RETURN(self.keys_, Scratch<float>::Allocate(uint64_t{rows_max} * config.index_dim));
  return self;
}

void DeepseekCompressor::FindGroups(const DeepseekBatch& batch, uint32_t ratio) {
  groups_.clear();
  for (uint32_t row = 0; row < batch.rows(); ++row) {
    const uint32_t position = batch.row(row).position;
    if (position % ratio == ratio - 1) groups_.push_back({row, position / ratio});
  }
}

// Tokens of the group that an earlier step computed are in the state.
void DeepseekCompressor::Combine(const DeepseekBatch& batch, uint32_t layer, const Group& group,
                                 float* out) const {
  const uint32_t n = config_->head_dim;
  const uint32_t ratio = config_->layers[layer].ratio;
  const DeepseekPart& part = batch.parts()[batch.row(group.row).sequence];
  if (ratio == 1) {
    std::copy_n(values_.data() + uint64_t{group.row} * n, n, out);
    return;
  }
  std::array<const std::byte*, kRatioMax> gates, values;
  for (uint32_t i = 0; i < ratio; ++i) {
    const uint32_t position = group.index * ratio + i;
    if (position >= part.position) {
      const uint64_t row = part.first + (position - part.position);
      gates[i] = reinterpret_cast<const std::byte*>(gates_.data() + row * n);
      values[i] = reinterpret_cast<const std::byte*>(values_.data() + row * n);
    } else {
      gates[i] = layout_->OpenRow(batch.sequence_of(group.row).state, layer, position);
      values[i] = gates[i] + n * sizeof(float);
    }
  }
  const auto at = [](const std::byte* row, uint32_t channel) {
    float value;
    std::memcpy(&value, row + channel * sizeof value, sizeof value);
    return value;
  };
  for (uint32_t channel = 0; channel < n; ++channel) {
    float largest = at(gates[0], channel);
    for (uint32_t i = 1; i < ratio; ++i) largest = std::max(largest, at(gates[i], channel));
    float weights[kRatioMax];
    float sum = 0;
    for (uint32_t i = 0; i < ratio; ++i) {
      weights[i] = tensor::ExactExp(at(gates[i], channel) - largest);
      sum = sum + weights[i];
    }
    float combined = 0;
    for (uint32_t i = 0; i < ratio; ++i) {
      combined = combined + weights[i] / sum * at(values[i], channel);
    }
    out[channel] = combined;
  }
}

// The last rows of each sequence, as many as the ring holds: an open group, and what a step that
// takes drafts back will need again.
void DeepseekCompressor::KeepOpen(const DeepseekBatch& batch, uint32_t layer) const {
  const uint32_t n = config_->head_dim;
  for (size_t i = 0; i < batch.parts().size(); ++i) {
    const DeepseekPart& part = batch.parts()[i];
    for (uint32_t back = std::min(part.count, layout_->open_slots(layer)); back >= 1; --back) {
      const uint64_t row = part.first + part.count - back;
      std::byte* open = layout_->OpenRow(batch.sequences()[i].state, layer, part.end() - back);
      std::memcpy(open, gates_.data() + row * n, n * sizeof(float));
      std::memcpy(open + n * sizeof(float), values_.data() + row * n, n * sizeof(float));
    }
  }
}

void DeepseekCompressor::Write(tensor::Compute compute, const DeepseekRotary& rotary,
                               const DeepseekBatch& batch, uint32_t layer,
                               const CompressorWeights& weights, const float* hidden) {
  const uint32_t rows = batch.rows();
  const uint32_t n = config_->head_dim;
  const uint32_t key_n = config_->index_dim;
  const uint32_t ratio = config_->layers[layer].ratio;
  const auto product = [&](const BlockMatrix& matrix, float* out) -> tensor::BlockProduct {
    return {matrix, hidden, config_->hidden, rows, out, n};
  };
  const std::array products = {product(weights.value, values_.data()),
                               product(weights.gate, gates_.data())};
  tensor::BlockLinear(compute, std::span(products).first(ratio == 1 ? 1 : 2));
  FindGroups(batch, ratio);
  const auto groups = static_cast<uint32_t>(groups_.size());

  const float epsilon = config_->rms_epsilon;
  const tensor::KernelTable& kernels = compute.kernels;
  const auto round = [&](float* x, uint64_t count) {
    if (roundings_.activations) tensor::RoundToBf16(compute.kernels, {x, count});
  };
  ForEachRow(compute, groups, uint64_t{n} * ratio * kExpCost, [&](uint32_t i) {
    const Group& group = groups_[i];
    float* latent = latents_.data() + uint64_t{i} * n;
    float* main = mains_.data() + uint64_t{i} * n;
    Combine(batch, layer, group, main);
    round(main, n);
    kernels.rms_norm(main, weights.norm.data(), epsilon, n, latent);
    round(latent, n);
    std::copy_n(latent, n, main);
    rotary.RotateCompressed(kernels, group.index * ratio, n, main);
    round(main, n);
    const SequenceRows& sequence = batch.sequence_of(group.row);
    tensor::EncodeRow(compute.kernels, roundings_.main, {main, n},
                      layout_->MainRow(layer, sequence.pages, group.index));
  });

  Multiply(compute, weights.key, latents_.data(), groups, keys_.data());
  ForEachRow(compute, groups, uint64_t{key_n} * kExpCost, [&](uint32_t i) {
    const Group& group = groups_[i];
    float* key = keys_.data() + uint64_t{i} * key_n;
    round(key, key_n);
    kernels.rms_norm(key, weights.key_norm.data(), epsilon, key_n, key);
    round(key, key_n);
    rotary.RotateCompressed(kernels, group.index * ratio, key_n, key);
    round(key, key_n);
    const SequenceRows& sequence = batch.sequence_of(group.row);
    tensor::EncodeRow(compute.kernels, roundings_.key, {key, key_n},
                      layout_->KeyRow(layer, sequence.pages, group.index));
  });
  if (ratio > 1) KeepOpen(batch, layer);
}

}  // namespace plumb::model
