// tensor/attention.h
// Causal attention of a ragged batch over paged keys and values. Each query folds one partial
// softmax per page, left to right, so its bits depend on its position and pages alone, not on
// chunking, batch mates or threads. Only slots of valid keys matter: stale slots may hold anything,
// NaN too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/kv_page.h"
#include "tensor/ops.h"

namespace plumb::tensor {

struct AttentionShape {
  uint32_t heads = 0;   // of queries; a multiple of the layout's kv_heads
  float scale = 0;      // of scores, usually 1 / sqrt(head_dim)
  uint32_t window = 0;  // a query sees itself and the window - 1 keys before it; 0 = all
};

// Rows of one sequence, at positions [position, position + rows).
struct AttentionSequence {
  std::span<std::byte* const> pages;  // page i: positions [128 i, ...); covers every row
  uint32_t position = 0;
  uint32_t rows = 0;
};

// Writes the rows' keys and values (rounded to f16) of `layer` into their pages.
// keys, values: [sum of rows, kv_heads, head_dim], in the order of `sequences`. Must precede
// Attend.
void StoreKeysValues(Compute compute, const KvLayout& layout, uint32_t layer,
                     std::span<const AttentionSequence> sequences, const float* keys,
                     const float* values);

// queries, out: [sum of rows, heads, head_dim]; out must not overlap queries.
void Attend(Compute compute, const KvLayout& layout, uint32_t layer, const AttentionShape& shape,
            std::span<const AttentionSequence> sequences, const float* queries, float* out);

}  // namespace plumb::tensor
