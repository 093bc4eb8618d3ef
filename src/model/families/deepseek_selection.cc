// model/families/deepseek_selection.cc: queries for all rows, then slices of rows whose scores fit
// the scratch: scores in one fork-join, choices in another.
#include "model/families/deepseek_selection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace plumb::model {
namespace {

using tensor::KeyRange;

// Scores computed at once; more where a single query has more.
constexpr uint64_t kSliceScores = 4 << 20;

}  // namespace

base::Result<DeepseekSelection> DeepseekSelection::Create(const DeepseekConfig& config,
                                                          const DeepseekRoundings& roundings,
                                                          const DeepseekLayout& layout,
                                                          const DeepseekLimits& limits,
                                                          DeepseekObserver* observer) {
  DeepseekSelection self(config, roundings, layout, observer);
  const uint64_t rows = limits.rows_max;
  const uint64_t context = limits.context_max;
  const bool candidates = config.candidate_source != kNoLayer;
  self.scores_max_ = std::max(std::min(rows * context, kSliceScores), context);
  self.ranges_max_ = candidates ? config.candidate_blocks : 1;
  ASSIGN_OR_RETURN(self.queries_,
                   Scratch<float>::Allocate(rows * config.index_heads * config.index_dim));
  ASSIGN_OR_RETURN(self.weights_, Scratch<float>::Allocate(rows * config.index_heads));
  ASSIGN_OR_RETURN(self.scores_, Scratch<float>::Allocate(self.scores_max_));
  ASSIGN_OR_RETURN(self.places_, Scratch<uint32_t>::Allocate(self.scores_max_));
  ASSIGN_OR_RETURN(self.ranges_, Scratch<KeyRange>::Allocate(rows * self.ranges_max_));
  ASSIGN_OR_RETURN(self.chosen_, Scratch<uint32_t>::Allocate(rows * config.index_top));
  self.chosen_counts_.resize(rows);
  self.tasks_.reserve(rows);
  self.index_queries_.reserve(rows);
  if (!candidates) return self;
  CHECK(config.candidate_block_rows >= 1 && config.candidate_blocks >= 1);
  ASSIGN_OR_RETURN(self.block_scores_,
                   Scratch<float>::Allocate(self.scores_max_ / config.candidate_block_rows + rows));
  ASSIGN_OR_RETURN(self.blocks_, Scratch<uint32_t>::Allocate(rows * config.candidate_blocks));
  self.block_counts_.resize(rows);
  return self;
}

void DeepseekSelection::Queries(tensor::Compute compute, const DeepseekRotary& rotary,
                                const DeepseekBatch& batch, const SelectionInput& input) {
  const uint32_t rows = batch.rows();
  const uint32_t dim = config_->index_dim;
  const uint64_t width = uint64_t{config_->index_heads} * dim;
  Multiply(compute, input.weights->query, input.queries, rows, queries_.data());
  Multiply(compute, input.weights->weights, input.hidden, rows, weights_.data());
  RoundActivations(compute, roundings_, rows, config_->index_heads, weights_.data());
  RoundActivations(compute, roundings_, rows, width, queries_.data());
  ForEachRow(compute, rows, width, [&](uint32_t row) {
    float* query = queries_.data() + row * width;
    rotary.RotateLast(compute.kernels, rotary.Row(RotaryKind::kCompress, batch.row(row).origin),
                      config_->index_heads, dim, query);
    if (roundings_.activations) tensor::RoundToBf16(compute.kernels, {query, width});
    if (roundings_.key != tensor::RowFormat::kF32) {
      tensor::RoundRow(compute.kernels, roundings_.key, {query, width});
    }
  });
}

// Ranges of the keys in the row's candidate blocks; neighbours join.
uint32_t DeepseekSelection::CandidateRanges(uint32_t row, uint32_t visible,
                                            KeyRange* ranges) const {
  const uint32_t size = config_->candidate_block_rows;
  const uint32_t* blocks = blocks_.data() + uint64_t{row} * config_->candidate_blocks;
  uint32_t count = 0;
  for (uint32_t i = 0; i < block_counts_[row]; ++i) {
    const KeyRange range = {blocks[i] * size, std::min(visible, (blocks[i] + 1) * size)};
    if (count > 0 && ranges[count - 1].end == range.begin) {
      ranges[count - 1].end = range.end;
    } else {
      ranges[count++] = range;
    }
  }
  return count;
}

// Fills tasks_ with rows from `first` on, as many as the scratch holds; returns where it stopped.
uint32_t DeepseekSelection::PlanSlice(const DeepseekBatch& batch, uint32_t layer, uint32_t first) {
  const uint32_t ratio = config_->layers[layer].ratio;
  const bool narrowed = config_->candidate_source != kNoLayer && config_->candidate_source < layer;
  tasks_.clear();
  uint64_t scores = 0, blocks = 0;
  for (uint32_t row = first; row < batch.rows(); ++row) {
    const uint32_t visible = (batch.row(row).position + 1) / ratio;
    KeyRange* ranges = ranges_.data() + uint64_t{row} * ranges_max_;
    uint32_t range_count = visible > 0 ? 1 : 0;
    ranges[0] = {0, visible};
    if (narrowed) range_count = CandidateRanges(row, visible, ranges);
    uint32_t count = 0;
    for (uint32_t i = 0; i < range_count; ++i) count += ranges[i].end - ranges[i].begin;
    if (scores + count > scores_max_) {
      CHECK(row > first) << count;
      return row;
    }
    tasks_.push_back({row, range_count, scores, count, blocks});
    scores += count;
    if (layer == config_->candidate_source) blocks += block_count(count);
  }
  return batch.rows();
}

void DeepseekSelection::Score(tensor::Compute compute, const DeepseekBatch& batch, uint32_t layer) {
  const uint32_t source = config_->layers[layer].kv_source;
  const uint64_t width = uint64_t{config_->index_heads} * config_->index_dim;
  index_queries_.clear();
  for (const Task& task : tasks_) {
    index_queries_.push_back(
        {.query = queries_.data() + task.row * width,
         .weights = weights_.data() + uint64_t{task.row} * config_->index_heads,
         .pages = batch.sequence_of(task.row).pages,
         .offset = layout_->key_offset(source),
         .page_keys = layout_->page_rows(source),
         .ranges = {ranges_.data() + uint64_t{task.row} * ranges_max_, task.range_count},
         .scores = scores_.data() + task.scores_begin});
  }
  const double factor = 1.0 / std::sqrt(static_cast<double>(width));
  const tensor::IndexShape shape = {.heads = config_->index_heads,
                                    .dim = config_->index_dim,
                                    .factor = static_cast<float>(factor),
                                    .format = roundings_.key};
  tensor::IndexScores(compute, shape, index_queries_);
}

// A block is as good as its best row; the newest block is always kept.
void DeepseekSelection::ChooseBlocks(const Task& task) {
  const uint32_t size = config_->candidate_block_rows;
  const uint32_t count = block_count(task.scores_count);
  const float* scores = scores_.data() + task.scores_begin;
  float* best = block_scores_.data() + task.blocks_begin;
  for (uint32_t block = 0; block < count; ++block) {
    const uint32_t end = std::min(task.scores_count, (block + 1) * size);
    best[block] = -std::numeric_limits<float>::infinity();
    for (uint32_t i = block * size; i < end; ++i) {
      if (scores[i] > best[block]) best[block] = scores[i];
    }
  }
  if (count > 0) best[count - 1] = std::numeric_limits<float>::infinity();
  block_counts_[task.row] = tensor::SelectLargest(
      {best, count}, config_->candidate_blocks, {places_.data() + task.scores_begin, count},
      {blocks_.data() + uint64_t{task.row} * config_->candidate_blocks, config_->candidate_blocks});
}

void DeepseekSelection::ChooseRows(const Task& task) {
  uint32_t* chosen = chosen_.data() + uint64_t{task.row} * config_->index_top;
  const uint32_t count = tensor::SelectLargest(
      {scores_.data() + task.scores_begin, task.scores_count}, config_->index_top,
      {places_.data() + task.scores_begin, task.scores_count}, {chosen, config_->index_top});
  chosen_counts_[task.row] = count;
  // From places among the scores to rows of the sequence.
  const KeyRange* range = ranges_.data() + uint64_t{task.row} * ranges_max_;
  uint32_t before = 0;  // scores of earlier ranges
  for (uint32_t i = 0; i < count; ++i) {
    while (chosen[i] - before >= range->end - range->begin) {
      before += range->end - range->begin;
      ++range;
    }
    chosen[i] = range->begin + (chosen[i] - before);
  }
}

void DeepseekSelection::Choose(tensor::Compute compute, const DeepseekRotary& rotary,
                               const DeepseekBatch& batch, const SelectionInput& input) {
  Queries(compute, rotary, batch, input);
  for (uint32_t first = 0; first < batch.rows();) {
    first = PlanSlice(batch, input.layer, first);
    Score(compute, batch, input.layer);
    compute.pool.ParallelFor(static_cast<uint32_t>(tasks_.size()), [&](uint32_t item) {
      const Task& task = tasks_[item];
      if (roundings_.activations) {
        tensor::RoundToBf16(compute.kernels,
                            {scores_.data() + task.scores_begin, task.scores_count});
      }
      if (input.layer == config_->candidate_source) ChooseBlocks(task);
      ChooseRows(task);
    });
  }
  if (observer_ != nullptr) Observe(batch, input.layer);
}

void DeepseekSelection::Observe(const DeepseekBatch& batch, uint32_t layer) {
  for (uint32_t row = 0; row < batch.rows(); ++row) {
    observer_->Chose(DeepseekChoice::kRows, layer, row, Chosen(row));
    if (layer != config_->candidate_source) continue;
    observer_->Chose(
        DeepseekChoice::kCandidates, layer, row,
        {blocks_.data() + uint64_t{row} * config_->candidate_blocks, block_counts_[row]});
  }
}

void DeepseekSelection::Compact(const DeepseekBatch& batch) {
  batch.Compact(chosen_.data(), config_->index_top);
  batch.Compact(chosen_counts_.data(), 1);
  if (config_->candidate_source == kNoLayer) return;
  batch.Compact(blocks_.data(), config_->candidate_blocks);
  batch.Compact(block_counts_.data(), 1);
}

}  // namespace plumb::model
