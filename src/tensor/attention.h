// tensor/attention.h
// Causal attention of a ragged batch over paged keys and values. Each query folds one partial
// softmax per page, left to right, so its bits depend on its position and pages alone, not on
// chunking, batch mates or threads. Only slots of valid keys matter: stale slots may hold anything,
// NaN too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "tensor/aligned_buffer.h"
#include "tensor/kv_page.h"
#include "tensor/ops.h"

namespace plumb::tensor {

struct AttentionShape {
  uint32_t heads = 0;   // of queries; a multiple of the layout's kv_heads
  float scale = 0;      // of scores, usually 1 / sqrt(head_dim); > 0
  uint32_t window = 0;  // a query sees itself and the window - 1 keys before it; 0 = all
};

// Rows of one sequence, at positions [position, position + rows).
struct AttentionSequence {
  std::span<std::byte* const> pages;  // page i: positions [128 i, ...); covers every row
  uint32_t position = 0;
  uint32_t rows = 0;
};

// Writes the rows' keys and values, rounded to the layout's format, of `layer` into their pages.
// keys, values: [sum of rows, kv_heads, head_dim], in the order of `sequences`. Must precede
// Attend.
void StoreKeysValues(Compute compute, const KvLayout& layout, uint32_t layer,
                     std::span<const AttentionSequence> sequences, const float* keys,
                     const float* values);

// Room for the results of single pages, so that the pages of a few rows can be shared out among
// the threads. A resource type that moves. Thread: the pool's one caller.
class AttentionScratch {
 public:
  // Enough for one row each of several sequences of up to `context_max` tokens; more rows, where
  // they need no sharing out, need no room. At most kBytesMax. kOverloaded: no memory.
  static base::Result<AttentionScratch> Allocate(const KvLayout& layout, uint32_t heads,
                                                 uint32_t context_max, uint32_t threads);
  // Bytes of what Allocate takes, but for a few counters.
  static uint64_t Bytes(const KvLayout& layout, uint32_t heads, uint32_t context_max,
                        uint32_t threads);
  static constexpr uint64_t kBytesMax = uint64_t{64} << 20;

  uint64_t floats() const { return partials_.size() / sizeof(float); }
  float* partials() { return reinterpret_cast<float*>(partials_.data()); }
  uint32_t counters() const { return counters_max_; }
  std::atomic<uint32_t>& counter(uint32_t index) { return counters_[index]; }

 private:
  AlignedBuffer partials_;
  std::unique_ptr<std::atomic<uint32_t>[]> counters_;  // pieces of work still to be done
  uint32_t counters_max_ = 0;
};

// queries, out: [sum of rows, heads, head_dim]; out must not overlap queries. With `scratch`, the
// pages of a row may be read by several threads; the bits are the same.
void Attend(Compute compute, const KvLayout& layout, uint32_t layer, const AttentionShape& shape,
            std::span<const AttentionSequence> sequences, const float* queries, float* out,
            AttentionScratch& scratch);
void Attend(Compute compute, const KvLayout& layout, uint32_t layer, const AttentionShape& shape,
            std::span<const AttentionSequence> sequences, const float* queries, float* out);

}  // namespace plumb::tensor
