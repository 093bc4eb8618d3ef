// tensor/cache_row_kernels.h
// The functions over cache rows that differ by CPU target: part of KernelTable's contract
// (kernel_table.h), called by row_format.h, gathered_attention.h and index_scores.h. Formulas:
// docs/numerics_deepseek_v41.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/row_format.h"

namespace plumb::tensor {

// The least largest magnitude of a group: below, the scale stays. And the factor that finds a scale
// E4M3, rounded as it is used.
constexpr float kF8GroupLeast = 1e-4f;
constexpr float kF4Group32Least = 6 * 0x1p-126f;
constexpr float kF4Group16Least = 6 * 0x1p-9f;
constexpr float kSixth = 1.0f / 6;

// Keys of a query's list that are folded together.
constexpr uint32_t kKeyBlock = 64;
// Heads of one task.
constexpr uint32_t kGatheredHeadsMax = 64;

// Some heads of one query against its whole list.
struct GatheredTask {
  RowFormat window_format;
  RowFormat selected_format;
  uint32_t head_dim;  // a multiple of kRowChunk, at most kHeadDimMax
  uint32_t heads;     // 1 ... kGatheredHeadsMax
  float scale;        // of scores
  const float* sinks;
  const float* query;  // [heads, head_dim]
  float* out;
  const std::byte* const* window;
  const std::byte* const* selected;
  uint32_t window_count;
  uint32_t selected_count;
};

// Keys of one task.
constexpr uint32_t kIndexKeysMax = 256;

// One query's scores of some keys.
struct IndexTask {
  RowFormat format;
  uint32_t heads;
  uint32_t dim;  // a multiple of kRowChunk, at most kHeadDimMax
  float factor;
  const float* query;    // [heads, dim]
  const float* weights;  // [heads]
  const std::byte* const* keys;
  uint32_t count;  // 1 ... kIndexKeysMax
  float* scores;   // [count]
};

struct CacheRowKernels {
  // n is a multiple of kRowChunk, for kF32 any.
  void (*encode)(RowFormat format, const float* values, uint64_t n, std::byte* row);
  void (*decode)(RowFormat format, const std::byte* row, uint64_t n, float* values);
  void (*round)(RowFormat format, uint64_t n, float* values);
  void (*round_bf16)(uint64_t n, float* values);
  void (*attend)(const GatheredTask& task);
  void (*index_scores)(const IndexTask& task);
};

}  // namespace plumb::tensor
