// model/families/deepseek_attention.h
// Attention of one layer: a row sees the last `window` rows of its own layer and the main rows that
// the selection chose, both through a low-rank query; the heads' outputs are rotated back and leave
// through a grouped low-rank projection. Rows of the step itself are read from scratch, older ones
// from the sequence's state, always in the format in which they are stored. Formulas:
// docs/numerics_deepseek_v41.md, "Attention".
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/families/deepseek_batch.h"
#include "model/families/deepseek_observer.h"
#include "model/families/deepseek_rotary.h"
#include "model/families/deepseek_selection.h"
#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/deepseek_v41_state.h"
#include "model/families/deepseek_v41_weights.h"
#include "tensor/gathered_attention.h"

namespace plumb::model {

// Thread: the model's. No allocation after Create. For each layer, in this order: MakeWindowRows,
// Attend, KeepWindowRows.
class DeepseekAttentionLayer {
 public:
  // `config`, `layout` and `observer` (may be null) must outlive it. kOverloaded: out of memory.
  static base::Result<DeepseekAttentionLayer> Create(const DeepseekConfig& config,
                                                     const DeepseekRoundings& roundings,
                                                     const DeepseekLayout& layout,
                                                     const DeepseekLimits& limits,
                                                     DeepseekObserver* observer);

  // Window rows of all rows alive, from `hidden` [rows, hidden].
  void MakeWindowRows(tensor::Compute compute, const DeepseekRotary& rotary,
                      const DeepseekBatch& batch, uint32_t layer, const DeepseekAttention& weights,
                      const float* hidden);
  // out [rows, hidden], of the rows alive now: the last ones of those with window rows.
  void Attend(tensor::Compute compute, const DeepseekRotary& rotary, const DeepseekBatch& batch,
              uint32_t layer, const DeepseekAttention& weights, const float* hidden, float* out);
  // Stores the window rows in the sequences' states.
  void KeepWindowRows(const DeepseekBatch& batch, uint32_t layer) const;

  // After DeepseekBatch::Keep...
  void Compact(const DeepseekBatch& batch) { selection_.Compact(batch); }

 private:
  DeepseekAttentionLayer(const DeepseekConfig& config, const DeepseekRoundings& roundings,
                         const DeepseekLayout& layout, DeepseekObserver* observer)
      : config_(&config), roundings_(roundings), layout_(&layout), observer_(observer) {}

  // Rows computed at once: those of the batch from `first` on.
  struct Slice {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  void AttendSlice(tensor::Compute compute, const DeepseekRotary& rotary,
                   const DeepseekBatch& batch, uint32_t layer, const DeepseekAttention& weights,
                   Slice slice);
  void ListKeys(const DeepseekBatch& batch, uint32_t layer, Slice slice, uint32_t i);
  const std::byte* WindowRow(const DeepseekBatch& batch, uint32_t layer, uint32_t sequence,
                             uint32_t position) const;
  void ProjectOutput(tensor::Compute compute, const DeepseekAttention& weights, uint32_t rows,
                     float* out);

  const DeepseekConfig* config_;
  DeepseekRoundings roundings_;
  const DeepseekLayout* layout_;
  DeepseekObserver* observer_;
  DeepseekSelection selection_;
  uint32_t slice_rows_ = 0;
  uint32_t keys_max_ = 0;  // of a row

  std::vector<DeepseekPart> made_;  // by sequence: whose window rows are in window_rows_
  Scratch<std::byte> window_rows_;  // [rows, window_row_bytes]
  Scratch<float> rounded_;          // [rows, hidden]: inputs as F8 matrices read them
  Scratch<float> low_;              // [rows, query_rank]
  Scratch<float> kv_;               // [rows, head_dim]
  Scratch<float> queries_;          // [slice, heads, head_dim]
  Scratch<float> attended_;         // [slice, heads, head_dim]
  Scratch<float> grouped_;          // [slice, output_groups, output_rank]
  Scratch<const std::byte*> keys_;  // [slice, keys_max]
  std::vector<tensor::GatheredQuery> gathered_;
  std::vector<tensor::BlockProduct> group_products_;
};

}  // namespace plumb::model
