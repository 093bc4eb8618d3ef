// model/families/deepseek_engram.h
// The n-gram layers of DeepSeek-V4.1: rows looked up by the last token ids give each stream a key
// and all streams a value; a gate says how much of the value a stream takes. Addresses of rows are
// engram.h. Formulas: docs/numerics_deepseek_v41.md, "N-gram rows" (sources there).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/families/deepseek_batch.h"
#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/deepseek_v41_state.h"
#include "model/families/deepseek_v41_weights.h"
#include "model/families/engram.h"

namespace plumb::model {

// Thread: the model's. A row depends on its own streams and its sequence's last tokens alone. No
// allocation after Create.
class DeepseekEngram {
 public:
  // `config` and `layout` must outlive it. kOverloaded: out of memory.
  static base::Result<DeepseekEngram> Create(const DeepseekConfig& config,
                                             const DeepseekRoundings& roundings,
                                             const DeepseekLayout& layout,
                                             EngramAddresses addresses, uint32_t rows_max);

  // Finds the rows of every token of a step that has just been gathered, in every table, and asks
  // for them, so that they are in memory when their layer comes; and for those of the tokens that
  // come after the step, which have all of it to arrive.
  void Begin(const DeepseekBatch& batch, const DeepseekWeights& weights);
  // The rows [rows_per_token] of the table at `place` for a token at `position`, which is one of
  // the sequence's tokens or upcoming ones.
  void Find(const SequenceRows& sequence, uint32_t position, uint32_t place,
            std::span<uint64_t> rows) const;
  // streams [rows alive, m, hidden] += gate * value, for the table at `place`.
  void Add(tensor::Compute compute, const DeepseekBatch& batch, uint32_t place,
           const EngramWeights& weights, float* streams);
  // The ids that Begin found, [rows_per_token] of a row of the step.
  std::span<const uint64_t> RowsOf(uint32_t place, uint32_t origin) const;

 private:
  DeepseekEngram(const DeepseekConfig& config, const DeepseekRoundings& roundings,
                 const DeepseekLayout& layout, EngramAddresses addresses);
  void AskAhead(const SequenceRows& sequence, uint32_t place, const EngramTable& table);
  void Look(tensor::Compute compute, const DeepseekBatch& batch, uint32_t place,
            const EngramWeights& weights, uint32_t first, uint32_t count);
  void Gate(const EngramWeights& weights, const float* keys_and_value, float* streams) const;

  const DeepseekConfig* config_;
  DeepseekRoundings roundings_;
  const DeepseekLayout* layout_;
  EngramAddresses addresses_;
  uint32_t rows_max_ = 0;
  uint32_t slice_rows_ = 0;  // computed at once
  uint32_t width_ = 0;       // of a token's rows, one after the other
  Scratch<uint64_t> ids_;    // [places, rows_max, rows_per_token]
  Scratch<uint64_t> ahead_;  // [rows_per_token], of an upcoming token
  Scratch<float> looked_;    // [slice, width]
  Scratch<float> products_;  // [slice, (m + 1) * hidden]
};

}  // namespace plumb::model
