// tests/golden/v41/golden_model.h
// A checkpoint of this folder, loaded, with one sequence to run through it, and what the sequence's
// pages and state hold afterwards.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "model/families/deepseek_v41.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/deepseek_v41_state.h"
#include "tensor/cpu_features.h"
#include "tensor/row_format.h"

namespace plumb::model {

constexpr uint32_t kGoldenBacktrack = 6;

class GoldenModel {
 public:
  GoldenModel(const std::string& path, Roundings roundings, DeepseekObserver* observer,
              uint32_t replay_rows = 0)
      : pool_({.threads = 2}), roundings_(RoundingsOf(roundings)) {
    auto checkpoint = OpenModelFile(path);
    CHECK(checkpoint.ok()) << checkpoint.status().ToString();
    checkpoint_ = *std::move(checkpoint);
    auto config = ReadDeepseekConfig(*checkpoint_);
    CHECK(config.ok()) << config.status().ToString();
    config_ = *config;
    layout_.emplace(config_, roundings_, kGoldenBacktrack);
    auto model = LoadDeepseekV41Observed(*checkpoint_,
                                         {.pool = pool_,
                                          .kernels = **tensor::SelectKernels("auto"),
                                          .rows_max = 128,
                                          .logits_rows_max = 128,
                                          .roundings = roundings,
                                          .replay_rows = replay_rows,
                                          .backtrack_rows = kGoldenBacktrack},
                                         observer);
    CHECK(model.ok()) << model.status().ToString();
    model_ = *std::move(model);
  }

  const DeepseekConfig& config() const { return config_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  uint64_t vocabulary() const { return config_.vocabulary; }

  // Begins a sequence: the next Run starts at position 0.
  void Begin(uint32_t replay_from) {
    replay_from_ = replay_from;
    position_ = 0;
    memory_.clear();
    pages_.clear();
    state_.assign(model_->info().state_bytes, std::byte{0xff});
  }
  // Logits of the rows that have them.
  std::vector<float> Run(std::span<const int32_t> ids) {
    std::vector<float> all;
    while (!ids.empty()) {
      const auto count = static_cast<uint32_t>(std::min<size_t>(ids.size(), 128));
      std::vector<TokenId> tokens;
      for (const int32_t id : ids.first(count)) tokens.push_back(TokenId(id));
      const uint32_t end = position_ + count;
      while (memory_.size() * kPageTokens < end) {
        memory_.emplace_back(model_->info().page_bytes, std::byte{0xff});
        pages_.push_back(memory_.back().data());
      }
      const uint32_t wanted = std::min(count, end - std::min(end, replay_from_));
      const SequenceRows rows[] = {
          {tokens, position_, pages_, wanted, state_.data(), replay_from_}};
      std::vector<float> logits(wanted * vocabulary());
      model_->Forward(rows, logits);
      all.insert(all.end(), logits.begin(), logits.end());
      position_ = end;
      ids = ids.subspan(count);
    }
    return all;
  }

  // What is stored, as f32: every `step`th main row or index key of a source, and window rows of
  // the last positions that are still held.
  std::vector<float> MainRows(uint32_t layer, uint32_t step = 1) {
    return Stored(layer, step, roundings_.main, config_.head_dim,
                  [&](uint32_t row) { return layout_->MainRow(layer, pages_, row); });
  }
  std::vector<float> IndexKeys(uint32_t layer, uint32_t step = 1) {
    return Stored(layer, step, roundings_.key, config_.index_dim,
                  [&](uint32_t row) { return layout_->KeyRow(layer, pages_, row); });
  }
  uint32_t window_first() const { return position_ - std::min(position_, layout_->window_slots()); }
  std::vector<float> WindowRows(uint32_t layer) {
    std::vector<float> values(uint64_t{position_ - window_first()} * config_.head_dim);
    for (uint32_t position = window_first(); position < position_; ++position) {
      tensor::DecodeRow(
          roundings_.window, layout_->WindowRow(state_.data(), layer, position),
          std::span(values).subspan(uint64_t{position - window_first()} * config_.head_dim,
                                    config_.head_dim));
    }
    return values;
  }

 private:
  template <typename Address>
  std::vector<float> Stored(uint32_t layer, uint32_t step, tensor::RowFormat format, uint64_t n,
                            Address address) {
    std::vector<float> values;
    const uint32_t rows = position_ / config_.layers[layer].ratio;
    for (uint32_t row = 0; row < rows; row += step) {
      values.resize(values.size() + n);
      tensor::DecodeRow(format, address(row), std::span(values).last(n));
    }
    return values;
  }

  tensor::ThreadPool pool_;
  DeepseekRoundings roundings_;
  std::unique_ptr<Checkpoint> checkpoint_;
  DeepseekConfig config_;
  std::optional<DeepseekLayout> layout_;
  std::unique_ptr<Model> model_;
  uint32_t replay_from_ = 0;
  uint32_t position_ = 0;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::byte*> pages_;
  std::vector<std::byte> state_;
};

// The index of the largest value of each row.
inline std::vector<int32_t> Largest(std::span<const float> logits, uint64_t columns) {
  std::vector<int32_t> largest;
  for (size_t row = 0; row < logits.size() / columns; ++row) {
    const auto begin = logits.begin() + static_cast<ptrdiff_t>(row * columns);
    largest.push_back(static_cast<int32_t>(
        std::max_element(begin, begin + static_cast<ptrdiff_t>(columns)) - begin));
  }
  return largest;
}

}  // namespace plumb::model
