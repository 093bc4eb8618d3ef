// model/families/deepseek_batch.cc: a step is flattened once; ending rows keeps the order of the
// others.
#include "model/families/deepseek_batch.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::model {

DeepseekBatch::DeepseekBatch(const DeepseekLimits& limits) : limits_(limits) {
  tokens_.reserve(limits.rows_max);
  positions_.reserve(limits.rows_max);
  rows_.reserve(limits.rows_max);
  parts_.reserve(limits.rows_max);
  counts_.reserve(limits.rows_max);
  kept_.reserve(limits.rows_max);
}

void DeepseekBatch::Gather(std::span<const SequenceRows> sequences) {
  sequences_ = sequences;
  tokens_.clear();
  positions_.clear();
  rows_.clear();
  parts_.clear();
  uint64_t logits = 0;
  for (uint32_t index = 0; index < sequences.size(); ++index) {
    const SequenceRows& sequence = sequences[index];
    const uint64_t count = sequence.tokens.size();
    CHECK(count >= 1 && count <= limits_.rows_max - rows_.size()) << count << " rows";
    const uint64_t end = sequence.position + count;
    CHECK(end <= limits_.context_max) << end << " tokens, context " << limits_.context_max;
    CHECK(end <= sequence.pages.size() * kPageTokens) << sequence.pages.size() << " pages";
    CHECK(sequence.state != nullptr) << "a sequence without state";
    const uint64_t replayed = end - std::min<uint64_t>(end, sequence.replay_from);
    const uint64_t hidden = HiddenRows(sequence);
    CHECK(hidden * limits_.width == sequence.hidden.size()) << sequence.hidden.size();
    CHECK(hidden == 0 || sequence.logits_rows == 0) << "hidden states and logits of one row";
    CHECK(sequence.logits_rows + hidden <= std::min(count, replayed))
        << sequence.logits_rows << " logits rows, " << hidden << " hidden states, replay from "
        << sequence.replay_from;
    logits += sequence.logits_rows;
    CHECK(logits <= limits_.logits_rows_max) << "more logits rows than agreed";
    CHECK(sequence.upcoming.size() <= limits_.rows_max &&
          std::ranges::all_of(
              sequence.upcoming,
              [this](TokenId token) { return base::Index(token) < limits_.vocabulary; }))
        << sequence.upcoming.size() << " upcoming tokens";
    parts_.push_back(
        {static_cast<uint32_t>(rows_.size()), static_cast<uint32_t>(count), sequence.position});
    for (uint32_t i = 0; i < count; ++i) {
      CHECK(base::Index(sequence.tokens[i]) < limits_.vocabulary)
          << base::Index(sequence.tokens[i]);
      const auto row = static_cast<uint32_t>(rows_.size());
      rows_.push_back({index, sequence.position + i, row});
      tokens_.push_back(sequence.tokens[i]);
      positions_.push_back(sequence.position + i);
    }
  }
  CHECK(!rows_.empty());
  logits_rows_ = static_cast<uint32_t>(logits);
}

uint32_t DeepseekBatch::HiddenRows(const SequenceRows& sequence) const {
  return static_cast<uint32_t>(sequence.hidden.size() / limits_.width);
}

void DeepseekBatch::KeepReplayed() {
  counts_.clear();
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    const uint32_t end = parts_[i].end();
    const uint32_t replayed = end - std::min(end, sequences_[i].replay_from);
    counts_.push_back(std::min(parts_[i].count, replayed));
  }
  Keep(counts_);
}

void DeepseekBatch::KeepWanted() {
  counts_.clear();
  for (const SequenceRows& sequence : sequences_) {
    counts_.push_back(sequence.logits_rows + HiddenRows(sequence));
  }
  Keep(counts_);
}

void DeepseekBatch::TakeHidden(float* x) const {
  const float* next = x;
  float* kept = x;  // never behind `next`
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    const uint64_t values = uint64_t{parts_[i].count} * limits_.width;
    if (!sequences_[i].hidden.empty()) {
      std::copy_n(next, values, sequences_[i].hidden.data());
    } else {
      if (kept != next) std::copy_n(next, values, kept);
      kept += values;
    }
    next += values;
  }
}

void DeepseekBatch::Keep(std::span<const uint32_t> counts) {
  kept_.clear();
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    DeepseekPart& part = parts_[i];
    const uint32_t ended = part.count - counts[i];
    const uint32_t first = part.first + ended;
    part = {static_cast<uint32_t>(kept_.size()), counts[i], part.position + ended};
    for (uint32_t row = first; row < first + part.count; ++row) {
      rows_[kept_.size()] = rows_[row];  // never behind `row`
      kept_.push_back(row);
    }
  }
  rows_.resize(kept_.size());
}

}  // namespace plumb::model
