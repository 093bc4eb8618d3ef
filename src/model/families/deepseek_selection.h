// model/families/deepseek_selection.h
// Which main rows a query attends to: every row that is complete at its position is scored by the
// index keys, and the best are taken. In the decoder one layer also chooses the best blocks of
// rows, and later layers score only those. A list stays valid for the layers that use it, until
// the next layer chooses. Formulas: docs/numerics_deepseek_v41.md, "Selection".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/families/deepseek_batch.h"
#include "model/families/deepseek_observer.h"
#include "model/families/deepseek_rotary.h"
#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/deepseek_v41_state.h"
#include "model/families/deepseek_v41_weights.h"
#include "tensor/index_scores.h"

namespace plumb::model {

// What a layer that selects is given, for the rows alive.
struct SelectionInput {
  uint32_t layer = 0;
  const IndexerWeights* weights = nullptr;
  const float* hidden = nullptr;   // [rows, hidden]: the attention input
  const float* queries = nullptr;  // [rows, query_rank]: the normalised low-rank query, as products
                                   // with F8 matrices read it
};

// Thread: the model's; Chosen also from items of the pool. No allocation after Create. A row's
// choice depends on its own query and its sequence's keys alone.
class DeepseekSelection {
 public:
  DeepseekSelection() = default;
  // `config`, `layout` and `observer` (may be null) must outlive it. kOverloaded: out of memory.
  static base::Result<DeepseekSelection> Create(const DeepseekConfig& config,
                                                const DeepseekRoundings& roundings,
                                                const DeepseekLayout& layout,
                                                const DeepseekLimits& limits,
                                                DeepseekObserver* observer);

  // Replaces the lists of all rows alive. Rows must not have ended between the candidate source
  // and the layers after it.
  void Choose(tensor::Compute compute, const DeepseekRotary& rotary, const DeepseekBatch& batch,
              const SelectionInput& input);

  // Main rows chosen for a row, ascending.
  std::span<const uint32_t> Chosen(uint32_t row) const {
    return {chosen_.data() + uint64_t{row} * config_->index_top, chosen_counts_[row]};
  }
  // After DeepseekBatch::Keep...: moves the lists of rows alive to the front.
  void Compact(const DeepseekBatch& batch);

 private:
  DeepseekSelection(const DeepseekConfig& config, const DeepseekRoundings& roundings,
                    const DeepseekLayout& layout, DeepseekObserver* observer)
      : config_(&config), roundings_(roundings), layout_(&layout), observer_(observer) {}

  // A row's share of the slice that is computed at once.
  struct Task {
    uint32_t row = 0;
    uint32_t range_count = 0;
    uint64_t scores_begin = 0;
    uint32_t scores_count = 0;
    uint64_t blocks_begin = 0;
  };
  void Queries(tensor::Compute compute, const DeepseekRotary& rotary, const DeepseekBatch& batch,
               const SelectionInput& input);
  uint32_t PlanSlice(const DeepseekBatch& batch, uint32_t layer, uint32_t first);
  uint32_t CandidateRanges(uint32_t row, uint32_t visible, tensor::KeyRange* ranges) const;
  void Score(tensor::Compute compute, const DeepseekBatch& batch, uint32_t layer);
  void ChooseBlocks(const Task& task);
  void ChooseRows(const Task& task);
  void Observe(const DeepseekBatch& batch, uint32_t layer);
  uint32_t block_count(uint32_t scores) const {
    const uint32_t rows = config_->candidate_block_rows;
    return (scores + rows - 1) / rows;
  }

  const DeepseekConfig* config_ = nullptr;
  DeepseekRoundings roundings_;
  const DeepseekLayout* layout_ = nullptr;
  DeepseekObserver* observer_ = nullptr;
  uint64_t scores_max_ = 0;
  uint32_t ranges_max_ = 1;  // of a row

  Scratch<float> queries_;            // [rows, index_heads, index_dim]
  Scratch<float> weights_;            // [rows, index_heads]
  Scratch<float> scores_;             // of a slice
  Scratch<uint32_t> places_;          // likewise: scratch of SelectLargest
  Scratch<float> block_scores_;       // of a slice
  Scratch<tensor::KeyRange> ranges_;  // [rows, ranges_max]
  std::vector<Task> tasks_;
  std::vector<tensor::IndexQuery> index_queries_;
  Scratch<uint32_t> chosen_;  // [rows, index_top]
  std::vector<uint32_t> chosen_counts_;
  Scratch<uint32_t> blocks_;  // [rows, candidate_blocks]
  std::vector<uint32_t> block_counts_;
};

}  // namespace plumb::model
