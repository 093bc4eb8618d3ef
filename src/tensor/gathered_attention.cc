// tensor/gathered_attention.cc: argument checks, and the split into items. An item is a query, or,
// when queries are too few for the threads, some of its heads; each item widens the keys for
// itself, so that fewer heads mean more work in all.
#include "tensor/gathered_attention.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/kv_page.h"

namespace plumb::tensor {
namespace {

constexpr uint32_t kHeadsMin = 8;        // of an item, where the query has as many
constexpr uint32_t kItemsPerThread = 4;  // enough for balance

void CheckArguments(const GatheredShape& shape, std::span<const GatheredQuery> queries) {
  CHECK(shape.heads > 0 && shape.sinks != nullptr) << shape.heads << " heads";
  CHECK(shape.head_dim > 0 && shape.head_dim % kRowChunk == 0 && shape.head_dim <= kHeadDimMax)
      << shape.head_dim;
  CHECK(shape.scale > 0) << shape.scale;
  for (const GatheredQuery& query : queries) {
    CHECK(query.window.size() + query.selected.size() <= UINT32_MAX);
    CHECK(query.query != query.out);
  }
}

// Into how many items a query is cut: as few as keep all threads busy.
uint32_t PiecesOf(uint32_t heads, size_t queries, uint32_t threads) {
  uint32_t pieces = (heads + kGatheredHeadsMax - 1) / kGatheredHeadsMax;
  while (heads / (2 * pieces) >= kHeadsMin && queries * pieces % threads != 0 &&
         queries * pieces < uint64_t{kItemsPerThread} * threads) {
    pieces *= 2;
  }
  return pieces;
}

}  // namespace

void AttendGathered(Compute compute, const GatheredShape& shape,
                    std::span<const GatheredQuery> queries) {
  CheckArguments(shape, queries);
  const uint32_t pieces = PiecesOf(shape.heads, queries.size(), compute.pool.threads());
  compute.pool.ParallelFor(static_cast<uint32_t>(queries.size()) * pieces, [&](uint32_t item) {
    const GatheredQuery& query = queries[item / pieces];
    const uint32_t piece = item % pieces;
    const auto begin = static_cast<uint32_t>(uint64_t{shape.heads} * piece / pieces);
    const auto end = static_cast<uint32_t>(uint64_t{shape.heads} * (piece + 1) / pieces);
    const size_t first = size_t{begin} * shape.head_dim;
    compute.kernels.cache_rows.attend({
        .window_format = shape.window,
        .selected_format = shape.selected,
        .head_dim = shape.head_dim,
        .heads = end - begin,
        .scale = shape.scale,
        .sinks = shape.sinks + begin,
        .query = query.query + first,
        .out = query.out + first,
        .window = query.window.data(),
        .selected = query.selected.data(),
        .window_count = static_cast<uint32_t>(query.window.size()),
        .selected_count = static_cast<uint32_t>(query.selected.size()),
    });
  });
}

}  // namespace plumb::tensor
