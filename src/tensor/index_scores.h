// tensor/index_scores.h
// Which rows attention looks at: the score of a query against each index key, and the choice of the
// best. score = factor * sum over heads of w_h * relu(q_h . k). Source: DeepSeek-V4.1's indexer;
// formula and order: docs/numerics_deepseek_v41.md, "Selection". Read next: gathered_attention.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/ops.h"
#include "tensor/row_format.h"

namespace plumb::tensor {

struct IndexShape {
  uint32_t heads = 0;
  uint32_t dim = 0;  // a multiple of 32, at most kHeadDimMax
  float factor = 0;
  RowFormat format = RowFormat::kF32;  // of the keys
};

// Keys [begin, end) of a sequence.
struct KeyRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// One query against its keys: key j lies in pages[j / page_keys], at offset + (j % page_keys) *
// RowBytes(format, dim).
struct IndexQuery {
  const float* query = nullptr;    // [heads, dim], already rounded as the format of queries wants
  const float* weights = nullptr;  // [heads]
  std::span<std::byte* const> pages;
  uint64_t offset = 0;
  uint32_t page_keys = 0;
  std::span<const KeyRange> ranges;  // ascending, disjoint
  float* scores = nullptr;           // one for each key of the ranges, in order
};

// All queries in one fork-join; a query with many keys is shared out. No allocation. A range's keys
// lie inside the pages (CHECK).
void IndexScores(Compute compute, const IndexShape& shape, std::span<const IndexQuery> queries);

// Places of the min(count, scores.size()) largest scores, of equal ones the lower place, written to
// `chosen` in ascending order; returns how many. NaN counts as the smallest. `scratch` holds
// scores.size() places. Thread: any; O(n).
uint32_t SelectLargest(std::span<const float> scores, uint32_t count, std::span<uint32_t> scratch,
                       std::span<uint32_t> chosen);

}  // namespace plumb::tensor
