// model/families/deepseek_compressor.h
// What layers that own keys and values add to the pages: each group of `ratio` tokens becomes one
// main row (key and value of attention) and one index key. A group that is still open is kept in
// the sequence's state. Formulas: docs/numerics_deepseek_v41.md, "Main rows" (sources there).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/families/deepseek_batch.h"
#include "model/families/deepseek_rotary.h"
#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/deepseek_v41_state.h"
#include "model/families/deepseek_v41_weights.h"

namespace plumb::model {

// Thread: the model's. No allocation after Create.
class DeepseekCompressor {
 public:
  // `config` and `layout` must outlive it. kOverloaded: out of memory.
  static base::Result<DeepseekCompressor> Create(const DeepseekConfig& config,
                                                 const DeepseekRoundings& roundings,
                                                 const DeepseekLayout& layout, uint32_t rows_max);

  // Writes the groups that end with one of the rows alive, and remembers the open ones. `hidden`
  // [rows, hidden]: the attention input of layer `layer`, which owns keys and values.
  void Write(tensor::Compute compute, const DeepseekRotary& rotary, const DeepseekBatch& batch,
             uint32_t layer, const CompressorWeights& weights, const float* hidden);

 private:
  DeepseekCompressor(const DeepseekConfig& config, const DeepseekRoundings& roundings,
                     const DeepseekLayout& layout)
      : config_(&config), roundings_(roundings), layout_(&layout) {}

  // A group by the row that ends it.
  struct Group {
    uint32_t row = 0;
    uint32_t index = 0;  // in the sequence
  };
  void FindGroups(const DeepseekBatch& batch, uint32_t ratio);
  void Combine(const DeepseekBatch& batch, uint32_t layer, const Group& group, float* out) const;
  void KeepOpen(const DeepseekBatch& batch, uint32_t layer) const;

  const DeepseekConfig* config_;
  DeepseekRoundings roundings_;
  const DeepseekLayout* layout_;
  std::vector<Group> groups_;
  Scratch<float> values_;   // [rows, head_dim]
  Scratch<float> gates_;    // [rows, head_dim]
  Scratch<float> latents_;  // [groups, head_dim]
  Scratch<float> mains_;    // [groups, head_dim]
  Scratch<float> keys_;     // [groups, index_dim]
};

}  // namespace plumb::model
