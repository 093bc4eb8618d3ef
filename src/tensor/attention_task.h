// tensor/attention_task.h
// What one call of an attention kernel does: part of KernelTable's contract (kernel_table.h), made
// by attention.cc. Formulas: docs/numerics.md, "Attention".
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/kv_page.h"

namespace plumb::tensor {

// Of one task; a multiple of every target's tile of queries.
constexpr uint32_t kQueriesMax = 96;

// Queries of one sequence against some pages of one KV head. Later queries see no earlier keys:
// key_begin and key_end ascend.
struct AttentionTask {
  const std::byte* const* pages;  // page i: positions [128 i, 128 i + 128)
  KvFormat format;
  uint64_t keys_offset;  // in a page
  uint64_t values_offset;
  uint64_t key_scales_offset;  // read for kQ8
  uint64_t value_scales_offset;
  uint32_t head_dim;              // a multiple of 16
  float exponent_scale;           // weights are 2^(exponent_scale * (score - maximum)); > 0
  uint32_t page_begin, page_end;  // pages to visit
  float* partials;                // null: fold them all into `out`; else see PartialLayout
  uint32_t queries;               // 1 ... kQueriesMax
  const float* query[kQueriesMax];
  float* out[kQueriesMax];
  uint32_t key_begin[kQueriesMax];  // valid positions [begin, end), not empty
  uint32_t key_end[kQueriesMax];
};

// Where a task leaves one page's results when it does not fold them: record i of `partials` is
// that of page page_begin + i. A query that sees nothing of the page has sum 0.
struct PartialLayout {
  uint32_t queries;
  uint32_t head_dim;

  constexpr size_t padded() const { return (size_t{queries} + 15) / 16 * 16; }
  constexpr size_t maxima() const { return 0; }  // [padded]
  constexpr size_t sums() const { return padded(); }
  constexpr size_t values() const { return 2 * padded(); }  // [queries][head_dim]
  constexpr size_t floats() const { return values() + size_t{queries} * head_dim; }
};

// Folds the records of `pages` consecutive pages into the queries' results.
struct FoldTask {
  const float* partials;
  uint32_t pages;
  uint32_t head_dim;
  float exponent_scale;
  uint32_t queries;
  float* const* out;
};

// One token's key and value of one KV head into slot `slot` of its page.
struct StoreTask {
  const float* key;
  const float* value;
  uint32_t head_dim;
  uint32_t slot;  // < kPageTokens
  KvFormat format;
  std::byte* keys;  // the head's planes in the page
  std::byte* values;
  std::byte* key_scales;  // written for kQ8
  std::byte* value_scales;
};

// Eight-bit pages: keys and values are rounded to [-kKvQuantMax, kKvQuantMax], queries and the
// weights of values to [-kFactorMax, kFactorMax]; smaller maxima than kQuantLeast count as zero.
constexpr float kKvQuantMax = 127;
constexpr float kFactorMax = 32767;
constexpr float kQuantLeast = 0x1p-100f;

// The base-2 exponential of the softmax, for y <= 0: 2^n p(y - n) with n the integer nearest to y,
// which adding kExp2Shift finds (and leaves n + 127 in the low bits). Below -126.5: 0. Within
// 1.02 ULP of the truth. p: minimax in relative error over [-1/2, 1/2] with p(0) = 1.
constexpr float kExp2Shift = 0x1.8p23f + 127;
constexpr float kExp2Least = -127;
constexpr float kExp2Factors[] = {1.0f,           0x1.62e432p-1f,  0x1.ebfbe2p-3f, 0x1.c6ae72p-5f,
                                  0x1.3b270ep-7f, 0x1.5f7276p-10f, 0x1.470b4ap-13f};
constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kMaximumStart = -0x1.fffffep127f;  // before the first page; finite, unlike -inf

}  // namespace plumb::tensor
