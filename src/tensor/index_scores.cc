// tensor/index_scores.cc: argument checks, the split of a query's keys into items, and the choice
// of the best by radix: three histograms of the scores' bits find the least score that is chosen,
// and how many of its equals are.
#include "tensor/index_scores.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "tensor/kv_page.h"

namespace plumb::tensor {
namespace {

constexpr uint32_t kItemKeys = 4 * kIndexKeysMax;

uint64_t CountKeys(const IndexQuery& query) {
  uint64_t keys = 0;
  uint64_t last = 0;
  for (const KeyRange& range : query.ranges) {
    CHECK(last <= range.begin && range.begin <= range.end) << range.begin << " " << range.end;
    last = range.end;
    keys += range.end - range.begin;
  }
  if (keys > 0) {
    CHECK(query.page_keys > 0 && last <= uint64_t{query.pages.size()} * query.page_keys)
        << last << " keys in " << query.pages.size() << " pages of " << query.page_keys;
  }
  return keys;
}

// Collects addresses of keys and scores them, kIndexKeysMax at a time.
class Scoring {
 public:
  Scoring(Compute compute, const IndexShape& shape, const IndexQuery& query, float* scores)
      : compute_(compute), shape_(shape), query_(query), scores_(scores) {}

  void Add(uint32_t begin, uint32_t end) {
    const uint64_t row = RowBytes(shape_.format, shape_.dim);
    uint32_t page = begin / query_.page_keys;
    uint32_t slot = begin % query_.page_keys;
    for (uint32_t key = begin; key < end; ++key) {
      keys_[count_++] = query_.pages[page] + query_.offset + slot * row;
      if (count_ == kIndexKeysMax) Flush();
      if (++slot < query_.page_keys) continue;
      slot = 0;
      ++page;
    }
  }

  void Flush() {
    if (count_ == 0) return;
    compute_.kernels.cache_rows.index_scores({.format = shape_.format,
                                              .heads = shape_.heads,
                                              .dim = shape_.dim,
                                              .factor = shape_.factor,
                                              .query = query_.query,
                                              .weights = query_.weights,
                                              .keys = keys_,
                                              .count = count_,
                                              .scores = scores_});
    scores_ += count_;
    count_ = 0;
  }

 private:
  const Compute compute_;
  const IndexShape& shape_;
  const IndexQuery& query_;
  float* scores_;
  const std::byte* keys_[kIndexKeysMax];
  uint32_t count_ = 0;
};

// Keys [skip, skip + kItemKeys) of the query's list.
void ScoreItem(Compute compute, const IndexShape& shape, const IndexQuery& query, uint64_t skip) {
  Scoring scoring(compute, shape, query, query.scores + skip);
  uint32_t wanted = kItemKeys;
  for (const KeyRange& range : query.ranges) {
    const uint32_t keys = range.end - range.begin;
    if (skip >= keys) {
      skip -= keys;
      continue;
    }
    const uint32_t begin = range.begin + static_cast<uint32_t>(skip);
    const uint32_t taken = std::min(wanted, range.end - begin);
    scoring.Add(begin, begin + taken);
    skip = 0;
    wanted -= taken;
    if (wanted == 0) break;
  }
  scoring.Flush();
}

// Ascends with the score; NaN is the least; zeros are equal.
uint32_t Rank(float score) {
  if (std::isnan(score)) return 0;
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

constexpr uint32_t kDigitBits[] = {11, 11, 10};
constexpr uint32_t kDigitsMax = 1u << 11;

// Of what `counts` counts, the digit of the `wanted`-th from the largest on; *wanted becomes the
// place among those of that digit, counted from 1.
uint32_t FindDigit(const uint32_t (&counts)[kDigitsMax], uint32_t digits, uint32_t* wanted) {
  for (uint32_t digit = digits; digit-- > 0;) {
    if (counts[digit] >= *wanted) return digit;
    *wanted -= counts[digit];
  }
  CHECK(false) << "fewer than wanted";
  return 0;
}

}  // namespace

void IndexScores(Compute compute, const IndexShape& shape, std::span<const IndexQuery> queries) {
  CHECK(shape.dim > 0 && shape.dim % kRowChunk == 0 && shape.dim <= kHeadDimMax) << shape.dim;
  CHECK(shape.heads > 0);
  uint64_t keys_max = 0;
  for (const IndexQuery& query : queries) keys_max = std::max(keys_max, CountKeys(query));
  const uint64_t pieces = (keys_max + kItemKeys - 1) / kItemKeys;
  CHECK(pieces * queries.size() <= UINT32_MAX);
  compute.pool.ParallelFor(static_cast<uint32_t>(pieces * queries.size()), [&](uint32_t item) {
    ScoreItem(compute, shape, queries[item / pieces], item % pieces * kItemKeys);
  });
}

uint32_t SelectLargest(std::span<const float> scores, uint32_t count, std::span<uint32_t> scratch,
                       std::span<uint32_t> chosen) {
  CHECK(scores.size() <= UINT32_MAX && scratch.size() >= scores.size());
  const auto n = static_cast<uint32_t>(scores.size());
  count = std::min(count, n);
  CHECK(chosen.size() >= count) << chosen.size() << " for " << count;
  if (count == 0) return 0;

  // `least`: the rank of the count-th largest, digit by digit; `equals`: how many of that rank are
  // chosen; scratch holds the places that agree in the digits so far.
  uint32_t least = 0;
  uint32_t equals = count;
  uint32_t places = n;
  uint32_t shift = 32;
  for (uint32_t place = 0; place < n; ++place) scratch[place] = place;
  for (const uint32_t bits : kDigitBits) {
    shift -= bits;
    const uint32_t mask = (1u << bits) - 1;
    uint32_t counts[kDigitsMax] = {};
    for (uint32_t i = 0; i < places; ++i) ++counts[Rank(scores[scratch[i]]) >> shift & mask];
    const uint32_t digit = FindDigit(counts, mask + 1, &equals);
    least |= digit << shift;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < places; ++i) {
      const uint32_t place = scratch[i];
      if ((Rank(scores[place]) >> shift & mask) == digit) scratch[kept++] = place;
    }
    places = kept;
  }
  uint32_t written = 0;
  for (uint32_t place = 0; place < n && written < count; ++place) {
    const uint32_t rank = Rank(scores[place]);
    if (rank < least || (rank == least && equals == 0)) continue;
    if (rank == least) --equals;
    chosen[written++] = place;
  }
  return written;
}

}  // namespace plumb::tensor
