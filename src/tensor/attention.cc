// tensor/attention.cc: argument checks, and the split into items of (a few rows, one KV head).
// TODO(perf): a single decode row of a model with few KV heads has few items; its pages can be
// split too, since page partials are folded in order anyway.
#include "tensor/attention.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::tensor {
namespace {

// Rows that share an item: enough queries to fill the kernels' tiles, few enough to balance.
constexpr uint32_t kItemRows = 8;

uint32_t ItemsOfRows(uint32_t rows) { return (rows + kItemRows - 1) / kItemRows; }

uint32_t CheckSequences(const KvLayout& layout, uint32_t layer,
                        std::span<const AttentionSequence> sequences) {
  CHECK(layout.head_dim > 0 && layout.head_dim % 16 == 0 && layout.head_dim <= kHeadDimMax)
      << layout.head_dim;
  CHECK(layer < layout.layers) << layer << " of " << layout.layers;
  uint32_t rows = 0;
  for (const AttentionSequence& sequence : sequences) {
    const uint64_t end = uint64_t{sequence.position} + sequence.rows;
    CHECK(end <= uint64_t{sequence.pages.size()} * kPageTokens)
        << end << " positions in " << sequence.pages.size() << " pages";
    rows += sequence.rows;
  }
  return rows;
}

// Rows [row, row + rows) of the batch, which are one sequence's from `position` on.
struct RowBlock {
  const AttentionSequence* sequence;
  uint32_t row;
  uint32_t position;
  uint32_t rows;
};

RowBlock FindBlock(std::span<const AttentionSequence> sequences, uint32_t index) {
  uint32_t row = 0;
  for (const AttentionSequence& sequence : sequences) {
    const uint32_t blocks = ItemsOfRows(sequence.rows);
    if (index < blocks) {
      const uint32_t skipped = index * kItemRows;
      return {&sequence, row + skipped, sequence.position + skipped,
              std::min(kItemRows, sequence.rows - skipped)};
    }
    index -= blocks;
    row += sequence.rows;
  }
  CHECK(false) << "an item beyond the last row";
  return {};
}

// All queries of the block's rows that belong to one KV head, kQueriesMax at a time.
void AttendBlock(const KernelTable& kernels, AttentionTask task, const RowBlock& block,
                 const AttentionShape& shape, uint32_t first_head, uint32_t group,
                 const float* queries, float* out) {
  task.queries = 0;
  for (uint32_t i = 0; i < block.rows * group; ++i) {
    const uint32_t row = i / group;
    const uint32_t head = first_head + i % group;
    const uint32_t end = block.position + row + 1;
    const size_t first = (size_t{block.row + row} * shape.heads + head) * task.head_dim;
    const uint32_t q = task.queries++;
    task.query[q] = queries + first;
    task.out[q] = out + first;
    task.key_begin[q] = shape.window != 0 && end > shape.window ? end - shape.window : 0;
    task.key_end[q] = end;
    if (task.queries == kQueriesMax || i + 1 == block.rows * group) {
      kernels.attention(task);
      task.queries = 0;
    }
  }
}

}  // namespace

void StoreKeysValues(Compute compute, const KvLayout& layout, uint32_t layer,
                     std::span<const AttentionSequence> sequences, const float* keys,
                     const float* values) {
  CheckSequences(layout, layer, sequences);
  uint32_t items = 0;
  for (const AttentionSequence& sequence : sequences) items += ItemsOfRows(sequence.rows);
  compute.pool.ParallelFor(items, [&](uint32_t item) {
    const RowBlock block = FindBlock(sequences, item);
    for (uint32_t i = 0; i < block.rows; ++i) {
      const uint32_t position = block.position + i;
      std::byte* page = block.sequence->pages[position / kPageTokens];
      for (uint32_t head = 0; head < layout.kv_heads; ++head) {
        const size_t first = (size_t{block.row + i} * layout.kv_heads + head) * layout.head_dim;
        compute.kernels.store({.key = keys + first,
                               .value = values + first,
                               .head_dim = layout.head_dim,
                               .slot = position % kPageTokens,
                               .keys = page + layout.keys_offset(layer, head),
                               .values = page + layout.values_offset(layer, head)});
      }
    }
  });
}

void Attend(Compute compute, const KvLayout& layout, uint32_t layer, const AttentionShape& shape,
            std::span<const AttentionSequence> sequences, const float* queries, float* out) {
  CheckSequences(layout, layer, sequences);
  CHECK(layout.kv_heads > 0 && shape.heads % layout.kv_heads == 0)
      << shape.heads << " heads over " << layout.kv_heads;
  const uint32_t group = shape.heads / layout.kv_heads;
  uint32_t blocks = 0;
  for (const AttentionSequence& sequence : sequences) blocks += ItemsOfRows(sequence.rows);
  compute.pool.ParallelFor(blocks * layout.kv_heads, [&](uint32_t item) {
    // The last rows first: they see the most keys.
    const RowBlock block = FindBlock(sequences, blocks - 1 - item / layout.kv_heads);
    const uint32_t kv_head = item % layout.kv_heads;
    const AttentionTask task = {.pages = block.sequence->pages.data(),
                                .keys_offset = layout.keys_offset(layer, kv_head),
                                .values_offset = layout.values_offset(layer, kv_head),
                                .head_dim = layout.head_dim,
                                .scale = shape.scale};
    AttendBlock(compute.kernels, task, block, shape, kv_head * group, group, queries, out);
  });
}

}  // namespace plumb::tensor
