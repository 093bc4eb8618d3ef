// model/layers_batch.h
// The rows of one step, flattened over its sequences, and which of them have logits. Rows without
// logits end in the last layer, once their keys and values are stored: nobody reads the rest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "tensor/attention.h"

namespace plumb::model {

// What a step may hold; Gather checks it.
struct BatchLimits {
  uint32_t rows_max = 0;
  uint32_t logits_rows_max = 0;
  uint32_t context_max = 0;
  uint32_t vocabulary = 0;
};

// Some rows of the batch, in its order; those of a sequence are neighbours.
struct RowSet {
  std::vector<uint32_t> positions;
  std::vector<tensor::AttentionSequence> sequences;

  uint32_t rows() const { return static_cast<uint32_t>(positions.size()); }
};

// Sized once. Thread: the model's.
class Batch {
 public:
  explicit Batch(const BatchLimits& limits);

  // Takes in a step; CHECKs all that could make anything later leave its buffers.
  void Gather(std::span<const SequenceRows> sequences);

  std::span<const uint32_t> tokens() const { return tokens_; }  // of all rows
  const RowSet& all() const { return all_; }
  const RowSet& wanted() const { return wanted_; }  // the rows with logits
  // Moves the wanted rows of x [all rows, width] to its front.
  void KeepWanted(float* x, uint32_t width) const;

 private:
  const BatchLimits limits_;
  std::vector<uint32_t> tokens_;
  RowSet all_;
  RowSet wanted_;
  std::vector<uint32_t> wanted_rows_;  // their indexes among all rows, ascending
};

}  // namespace plumb::model
