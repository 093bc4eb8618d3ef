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
  Reserve(wanted_, limits.rows_max);
  wanted_rows_.reserve(limits.rows_max);
  parts_.reserve(limits.rows_max);
}

void Batch::Gather(std::span<const SequenceRows> sequences) {
  tokens_.clear();
  Clear(all_);
  Clear(wanted_);
  wanted_rows_.clear();
  parts_.clear();
  logits_rows_ = 0;
  for (const SequenceRows& sequence : sequences) {
    const uint64_t count = sequence.tokens.size();
    CHECK(count >= 1 && count <= limits_.rows_max - tokens_.size()) << count << " rows";
    const uint64_t end = sequence.position + count;
    CHECK(end <= limits_.context_max) << end << " tokens, context " << limits_.context_max;
    CHECK(end <= sequence.pages.size() * kPageTokens) << sequence.pages.size() << " pages";
    const uint64_t hidden = sequence.hidden.size() / limits_.width;
    CHECK(hidden * limits_.width == sequence.hidden.size()) << sequence.hidden.size();
    CHECK(hidden == 0 || sequence.logits_rows == 0) << "hidden states and logits of one row";
    CHECK(sequence.logits_rows + hidden <= count) << sequence.logits_rows << " and " << hidden;
    CHECK(sequence.logits_rows <= limits_.logits_rows_max - logits_rows_)
        << "more logits rows than agreed";
    const auto wanted = static_cast<uint32_t>(sequence.logits_rows + hidden);
    logits_rows_ += sequence.logits_rows;
    if (wanted > 0) parts_.push_back({wanted, hidden > 0 ? sequence.hidden.data() : nullptr});
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

void Batch::TakeHidden(float* x) const {
  if (logits_rows_ == wanted_.rows()) return;
  const float* next = x;
  float* kept = x;  // never behind `next`
  for (const Part& part : parts_) {
    const uint64_t values = uint64_t{part.rows} * limits_.width;
    if (part.hidden != nullptr) {
      std::copy_n(next, values, part.hidden);
    } else {
      if (kept != next) std::copy_n(next, values, kept);
      kept += values;
    }
    next += values;
  }
}

}  // namespace plumb::model
