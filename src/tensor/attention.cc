// tensor/attention.cc: argument checks, and the split into items. An item is a block of queries of
// one sequence and KV head; when blocks are too few for the threads, it is a piece of the block's
// pages, and who finishes a block's last piece folds its pages, in order.
#include "tensor/attention.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace plumb::tensor {
namespace {

constexpr uint32_t kStoreRows = 16;      // of an item that stores keys and values
constexpr uint32_t kItemsPerThread = 4;  // wanted, for balance

uint32_t Quotient(uint32_t a, uint32_t b) { return (a + b - 1) / b; }  // rounded up

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

// What an item is cut from: `count` of the sequence's units (rows, or row and head of a group).
struct Block {
  const AttentionSequence* sequence;
  uint32_t first_row;  // of the sequence, in the batch
  uint32_t begin;      // first unit, in the sequence
  uint32_t count;
};

// Block `index` when every row has `units` units and blocks have `block_max` at most.
Block FindBlock(std::span<const AttentionSequence> sequences, uint32_t units, uint32_t block_max,
                uint32_t index) {
  uint32_t row = 0;
  for (const AttentionSequence& sequence : sequences) {
    const uint32_t blocks = Quotient(sequence.rows * units, block_max);
    if (index < blocks) {
      const uint32_t begin = index * block_max;
      return {&sequence, row, begin, std::min(block_max, sequence.rows * units - begin)};
    }
    index -= blocks;
    row += sequence.rows;
  }
  CHECK(false) << "an item beyond the last row";
  return {};
}

uint32_t CountBlocks(std::span<const AttentionSequence> sequences, uint32_t units,
                     uint32_t block_max) {
  uint32_t blocks = 0;
  for (const AttentionSequence& sequence : sequences) {
    blocks += Quotient(sequence.rows * units, block_max);
  }
  return blocks;
}

// One call of Attend.
class Attending {
 public:
  Attending(Compute compute, const KvLayout& layout, uint32_t layer, const AttentionShape& shape,
            std::span<const AttentionSequence> sequences, const float* queries, float* out)
      : compute_(compute),
        layout_(layout),
        layer_(layer),
        shape_(shape),
        sequences_(sequences),
        queries_(queries),
        out_(out),
        group_(shape.heads / layout.kv_heads),
        blocks_(CountBlocks(sequences, group_, kQueriesMax)),
        units_(blocks_ * layout.kv_heads) {}

  void Run(AttentionScratch* scratch) {
    if (scratch == nullptr || !Share(*scratch)) pieces_ = 1;
    compute_.pool.ParallelFor(units_ * pieces_, [&](uint32_t item) {
      AttentionTask task;
      // The last rows first: they see the most keys.
      const uint32_t unit = units_ - 1 - item / pieces_;
      Prepare(unit, task);
      if (pieces_ == 1 || task.page_end - task.page_begin == 1) {
        if (item % pieces_ == 0) compute_.kernels.attention(task);
        return;
      }
      AttendPiece(unit, item % pieces_, task, *scratch);
    });
  }

 private:
  // Decides whether pages are shared out, and into how many pieces.
  bool Share(AttentionScratch& scratch) {
    const uint32_t wanted = kItemsPerThread * compute_.pool.threads();
    if (compute_.pool.threads() == 1 || units_ >= wanted || units_ > scratch.counters()) {
      return false;
    }
    pieces_ = Quotient(wanted, std::max(units_, 1u));
    record_floats_ = 0;
    for (uint32_t unit = 0; unit < units_; ++unit) {
      AttentionTask task;
      Prepare(unit, task);
      const uint32_t pages = task.page_end - task.page_begin;
      // The same room for all, so that an item finds its own.
      record_floats_ = std::max<uint64_t>(
          record_floats_, pages * PartialLayout{task.queries, layout_.head_dim}.floats());
      scratch.counter(unit).store(std::min(pieces_, pages), std::memory_order_relaxed);
    }
    return record_floats_ * units_ <= scratch.floats();
  }

  // All queries of a block that belong to one KV head.
  void Prepare(uint32_t unit, AttentionTask& task) const {
    const Block block = FindBlock(sequences_, group_, kQueriesMax, unit / layout_.kv_heads);
    const uint32_t kv_head = unit % layout_.kv_heads;
    task.pages = block.sequence->pages.data();
    task.format = layout_.format;
    task.keys_offset = layout_.keys_offset(layer_, kv_head);
    task.values_offset = layout_.values_offset(layer_, kv_head);
    task.key_scales_offset = layout_.key_scales_offset(layer_, kv_head);
    task.value_scales_offset = layout_.value_scales_offset(layer_, kv_head);
    task.head_dim = layout_.head_dim;
    task.exponent_scale = shape_.scale * kLog2E;
    task.partials = nullptr;
    task.queries = block.count;
    for (uint32_t q = 0; q < block.count; ++q) {
      const uint32_t row = (block.begin + q) / group_;
      const uint32_t head = kv_head * group_ + (block.begin + q) % group_;
      const size_t first = (size_t{block.first_row + row} * shape_.heads + head) * layout_.head_dim;
      const uint32_t end = block.sequence->position + row + 1;
      task.query[q] = queries_ + first;
      task.out[q] = out_ + first;
      task.key_begin[q] = shape_.window != 0 && end > shape_.window ? end - shape_.window : 0;
      task.key_end[q] = end;
    }
    task.page_begin = task.key_begin[0] / kPageTokens;
    task.page_end = Quotient(task.key_end[block.count - 1], kPageTokens);
  }

  void AttendPiece(uint32_t unit, uint32_t piece, AttentionTask& task,
                   AttentionScratch& scratch) const {
    const uint32_t pages = task.page_end - task.page_begin;
    const uint32_t pieces = std::min(pieces_, pages);
    if (piece >= pieces) return;
    const PartialLayout record = {task.queries, task.head_dim};
    float* partials = scratch.partials() + record_floats_ * unit;
    const uint32_t begin = static_cast<uint32_t>(uint64_t{pages} * piece / pieces);
    const uint32_t end = static_cast<uint32_t>(uint64_t{pages} * (piece + 1) / pieces);
    task.page_end = task.page_begin + end;
    task.page_begin += begin;
    task.partials = partials + begin * record.floats();
    compute_.kernels.attention(task);
    if (scratch.counter(unit).fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    compute_.kernels.fold({.partials = partials,
                           .pages = pages,
                           .head_dim = task.head_dim,
                           .exponent_scale = task.exponent_scale,
                           .queries = task.queries,
                           .out = task.out});
  }

  const Compute compute_;
  const KvLayout& layout_;
  const uint32_t layer_;
  const AttentionShape& shape_;
  const std::span<const AttentionSequence> sequences_;
  const float* const queries_;
  float* const out_;
  const uint32_t group_;   // query heads of a KV head
  const uint32_t blocks_;  // of at most kQueriesMax queries (row and head of the group)
  const uint32_t units_;   // a block and a KV head
  uint32_t pieces_ = 1;    // of a unit, at most
  uint64_t record_floats_ = 0;
};

void CheckShape(const KvLayout& layout, const AttentionShape& shape) {
  CHECK(layout.kv_heads > 0 && shape.heads % layout.kv_heads == 0 && shape.heads > 0)
      << shape.heads << " heads over " << layout.kv_heads;
  CHECK(shape.scale > 0) << shape.scale;
}

}  // namespace

uint64_t AttentionScratch::Bytes(const KvLayout& layout, uint32_t heads, uint32_t context_max,
                                 uint32_t threads) {
  if (threads <= 1) return 0;
  const uint64_t units = uint64_t{kItemsPerThread} * threads;
  const uint64_t pages = uint64_t{context_max} / kPageTokens + 1;
  const PartialLayout record = {heads / layout.kv_heads, layout.head_dim};
  return std::min(kBytesMax, units * pages * record.floats() * sizeof(float));
}

base::Result<AttentionScratch> AttentionScratch::Allocate(const KvLayout& layout, uint32_t heads,
                                                          uint32_t context_max, uint32_t threads) {
  AttentionScratch scratch;
  if (threads <= 1) return scratch;
  const uint32_t units = kItemsPerThread * threads;
  ASSIGN_OR_RETURN(scratch.partials_,
                   AlignedBuffer::Allocate(Bytes(layout, heads, context_max, threads)));
  scratch.counters_ = std::make_unique<std::atomic<uint32_t>[]>(units);
  scratch.counters_max_ = units;
  return scratch;
}

void StoreKeysValues(Compute compute, const KvLayout& layout, uint32_t layer,
                     std::span<const AttentionSequence> sequences, const float* keys,
                     const float* values) {
  CheckSequences(layout, layer, sequences);
  const uint32_t blocks = CountBlocks(sequences, 1, kStoreRows);
  compute.pool.ParallelFor(blocks, [&](uint32_t item) {
    const Block block = FindBlock(sequences, 1, kStoreRows, item);
    for (uint32_t row = block.begin; row < block.begin + block.count; ++row) {
      const uint32_t position = block.sequence->position + row;
      std::byte* page = block.sequence->pages[position / kPageTokens];
      for (uint32_t head = 0; head < layout.kv_heads; ++head) {
        const size_t first =
            (size_t{block.first_row + row} * layout.kv_heads + head) * layout.head_dim;
        compute.kernels.store({.key = keys + first,
                               .value = values + first,
                               .head_dim = layout.head_dim,
                               .slot = position % kPageTokens,
                               .format = layout.format,
                               .keys = page + layout.keys_offset(layer, head),
                               .values = page + layout.values_offset(layer, head),
                               .key_scales = page + layout.key_scales_offset(layer, head),
                               .value_scales = page + layout.value_scales_offset(layer, head)});
      }
    }
  });
}

void Attend(Compute compute, const KvLayout& layout, uint32_t layer, const AttentionShape& shape,
            std::span<const AttentionSequence> sequences, const float* queries, float* out,
            AttentionScratch& scratch) {
  CheckSequences(layout, layer, sequences);
  CheckShape(layout, shape);
  Attending(compute, layout, layer, shape, sequences, queries, out).Run(&scratch);
}

void Attend(Compute compute, const KvLayout& layout, uint32_t layer, const AttentionShape& shape,
            std::span<const AttentionSequence> sequences, const float* queries, float* out) {
  CheckSequences(layout, layer, sequences);
  CheckShape(layout, shape);
  Attending(compute, layout, layer, shape, sequences, queries, out).Run(nullptr);
}

}  // namespace plumb::tensor
