// tensor/gathered_attention.h
// Attention over lists of cache rows, each of which is key and value at once, shared by all heads
// (multi-query, K = V), with a sink: a logit of each head that takes weight and has no value. A
// query's keys are folded in blocks of kKeyBlock of its own list, in order, each with its own
// maximum, so its bits depend on its list alone (docs/numerics_deepseek_v41.md, "Gathered
// attention"). Read next: row_format.h, index_scores.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/ops.h"
#include "tensor/row_format.h"

namespace plumb::tensor {

struct GatheredShape {
  uint32_t heads = 0;
  uint32_t head_dim = 0;         // a multiple of 32, at most kHeadDimMax
  float scale = 0;               // of scores; > 0
  const float* sinks = nullptr;  // [heads]; -inf: none
  RowFormat window = RowFormat::kF32;
  RowFormat selected = RowFormat::kF32;
};

// out_h = sum_k p_hk row_k, p_hk = exp(s_hk) / (sum_k exp(s_hk) + exp(sink_h)). No keys at all: 0.
struct GatheredQuery {
  const float* query = nullptr;  // [heads, head_dim]
  float* out = nullptr;          // [heads, head_dim]; not the query
  // The list: window rows first.
  std::span<const std::byte* const> window;
  std::span<const std::byte* const> selected;
};

// All queries in one fork-join, heads of a query possibly on several threads. No allocation.
void AttendGathered(Compute compute, const GatheredShape& shape,
                    std::span<const GatheredQuery> queries);

}  // namespace plumb::tensor
