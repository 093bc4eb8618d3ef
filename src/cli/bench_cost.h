// cli/bench_cost.h
// What a step must read and compute at least, by the model's shape alone, so that a speed becomes a
// share of what the machine reaches. Thread: any; pure.
#pragma once

#include <cstdint>
#include <optional>

#include "model/families/deepseek_v41_config.h"
#include "model/inspect.h"
#include "model/model.h"

namespace plumb::cli {

// Operations (a multiply-add is two), for rows of which `logit_rows` get logits and which see
// `keys` keys all together:
//   2 * rows * (parameters - embedding table - output table)      every weight once for each row
// + 2 * logit_rows * width * vocabulary                           the output table
// + 2 * keys * 2 * layers * heads * head_dim                      scores, and sums of values
// Bytes of a step: the resident weights (weight_bytes, without the embedding rows that are held
// beside the output table, since a step looks up a few) once, and page_bytes / 128 for each key
// seen. A row at position p sees p + 1 keys, or the sliding window where every layer has it.
// Of DeepSeek-V4.1: what model/families/deepseek_v41_need.h counts.
struct ModelCost {
  // False: rows do not all use the same weights (routed experts) or layers do not all see the same
  // keys, and the formulas above do not hold.
  bool known = false;
  bool quantised = false;  // most weights: their products are integer dots
  uint64_t body_weights = 0;
  uint64_t output_weights = 0;
  uint64_t multiply_adds_per_key = 0;
  uint64_t step_weight_bytes = 0;
  uint64_t key_bytes = 0;  // key and value of one token, all layers
  uint64_t window = 0;     // 0 = all
  // Of that family; the other numbers are not used then.
  std::optional<model::DeepseekConfig> deepseek;
  uint32_t replay_rows = 0;
};
// `experts`: the file has routed experts.
struct CostSource {
  const model::ModelInfo& info;
  const model::Inspection& inspection;
  bool experts = false;
  std::optional<model::DeepseekConfig> deepseek = std::nullopt;  // of that family
};
ModelCost CostOf(const CostSource& source);

struct Work {
  double operations = 0;
  double bytes = 0;
};
// A prompt from position 0 in steps of chunk_rows rows, logits for the last row.
Work PrefillWork(const ModelCost& cost, uint64_t prompt_tokens, uint64_t chunk_rows);
// `steps` steps of `batch` rows, the first at position `context`.
struct DecodeShape {
  uint64_t batch;
  uint64_t context;
  uint64_t steps;
};
Work DecodeWork(const ModelCost& cost, const DecodeShape& shape);

}  // namespace plumb::cli
