// model/families/deepseek_batch.h
// The rows of one step of DeepSeek-V4.1, and which of them are still alive: rows before a
// sequence's replay_from end where the decoder begins, rows of which nothing is wanted (logits or
// hidden states) in the last layer. The
// one place where a step's arguments are checked. Twin for other families: layers_batch.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace plumb::model {

struct DeepseekLimits {
  uint32_t rows_max = 0;
  uint32_t logits_rows_max = 0;
  uint32_t context_max = 0;
  uint32_t vocabulary = 0;
  uint32_t width = 0;  // of hidden states
};

// The rows of a sequence that are alive: neighbours, and the last ones of those it came with.
struct DeepseekPart {
  uint32_t first = 0;  // row
  uint32_t count = 0;
  uint32_t position = 0;  // of row `first`

  uint32_t end() const { return position + count; }
};

struct DeepseekRow {
  uint32_t sequence = 0;  // in the step
  uint32_t position = 0;
  uint32_t origin = 0;  // its row when the step began
};

// Sized once. Thread: the model's; reading also from items of the pool.
class DeepseekBatch {
 public:
  explicit DeepseekBatch(const DeepseekLimits& limits);

  // Takes in a step, which is borrowed until the next one; CHECKs all that could make anything
  // later leave its buffers.
  void Gather(std::span<const SequenceRows> sequences);

  std::span<const SequenceRows> sequences() const { return sequences_; }
  // Of all rows that the step began with.
  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const uint32_t> positions() const { return positions_; }

  // Alive.
  uint32_t rows() const { return static_cast<uint32_t>(rows_.size()); }
  const DeepseekRow& row(uint32_t row) const { return rows_[row]; }
  const SequenceRows& sequence_of(uint32_t row) const { return sequences_[rows_[row].sequence]; }
  std::span<const DeepseekPart> parts() const { return parts_; }  // by sequence, some empty

  uint32_t logits_rows() const { return logits_rows_; }

  // Ends the rows before their sequence's replay_from, or those of which nothing is wanted.
  void KeepReplayed();
  void KeepWanted();
  // Of x [rows alive, width], hidden states, once only the wanted rows are: writes them where they
  // are wanted, and moves the rows with logits to its front.
  void TakeHidden(float* x) const;
  // After KeepReplayed or KeepWanted: moves the rows of x [rows before, width] that are alive to
  // its front.
  template <typename T>
  void Compact(T* x, uint64_t width) const {
    for (uint32_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i] != i) std::copy_n(x + kept_[i] * width, width, x + i * width);
    }
  }

 private:
  void Keep(std::span<const uint32_t> counts);
  uint32_t HiddenRows(const SequenceRows& sequence) const;

  const DeepseekLimits limits_;
  std::span<const SequenceRows> sequences_;
  std::vector<TokenId> tokens_;
  std::vector<uint32_t> positions_;
  std::vector<DeepseekRow> rows_;
  std::vector<DeepseekPart> parts_;
  uint32_t logits_rows_ = 0;
  std::vector<uint32_t> counts_;  // scratch of the Keep functions, by sequence
  std::vector<uint32_t> kept_;    // each alive row's place before the last Keep
};

}  // namespace plumb::model
