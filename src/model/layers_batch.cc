// model/layers_batch.cc: the one place where a step's arguments are checked. After Gather, nothing
// in a family's Forward can leave its buffers.
#include "model/layers_batch.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::model {
namespace {

void Reserve(RowSet& set, uint32_t rows) {
  set.positions.reserve(rows);
  set.sequences.reserve(rows);
}

void Clear(RowSet& set) {
  set.positions.clear();
  set.sequences.clear();
}

// Rows [position, position + rows) of a sequence.
void Append(RowSet& set, std::span<std::byte* const> pages, uint32_t position, uint32_t rows) {
  if (rows == 0) return;
  for (uint32_t i = 0; i < rows; ++i) set.positions.push_back(position + i);
  set.sequences.push_back({pages, position, rows});
}

}  // namespace

Batch::Batch(const BatchLimits& limits) : limits_(limits) {
  tokens_.reserve(limits.rows_max);
  Reserve(all_, limits.rows_max);
  Reserve(wanted_, limits.logits_rows_max);
  wanted_rows_.reserve(limits.logits_rows_max);
}

void Batch::Gather(std::span<const SequenceRows> sequences) {
  tokens_.clear();
  Clear(all_);
  Clear(wanted_);
  wanted_rows_.clear();
  for (const SequenceRows& sequence : sequences) {
    const uint64_t count = sequence.tokens.size();
    CHECK(count >= 1 && count <= limits_.rows_max - tokens_.size()) << count << " rows";
    const uint64_t end = sequence.position + count;
    CHECK(end <= limits_.context_max) << end << " tokens, context " << limits_.context_max;
    CHECK(end <= sequence.pages.size() * kPageTokens) << sequence.pages.size() << " pages";
    const uint32_t wanted = sequence.logits_rows;
    CHECK(wanted <= count) << wanted;
    CHECK(wanted <= limits_.logits_rows_max - wanted_rows_.size())
        << "more logits rows than agreed";
    for (const TokenId id : sequence.tokens) {
      const uint32_t token = base::Index(id);
      CHECK(token < limits_.vocabulary) << token;
      tokens_.push_back(token);
    }
    const auto rows = static_cast<uint32_t>(count);
    Append(all_, sequence.pages, sequence.position, rows);
    Append(wanted_, sequence.pages, sequence.position + rows - wanted, wanted);
    const auto row_end = static_cast<uint32_t>(tokens_.size());
    for (uint32_t row = row_end - wanted; row < row_end; ++row) wanted_rows_.push_back(row);
  }
  CHECK(!tokens_.empty());
}

void Batch::KeepWanted(float* x, uint32_t width) const {
  for (uint32_t i = 0; i < wanted_rows_.size(); ++i) {
    const uint32_t row = wanted_rows_[i];  // >= i, so nothing is overwritten before it moved
    if (row != i) std::copy_n(x + uint64_t{row} * width, width, x + uint64_t{i} * width);
  }
}

}  // namespace plumb::model
