// model/layers_batch.h
// The rows of one step, flattened over its sequences, and which of them are wanted: for logits, or
// for their hidden states. Others end in the last layer, once their keys and values are stored:
// nobody reads the rest.
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
  uint32_t width = 0;  // of hidden states
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
  const RowSet& wanted() const { return wanted_; }  // rows with logits or hidden states
  uint32_t logits_rows() const { return logits_rows_; }
  // Moves the wanted rows of x [all rows, width] to its front.
  void KeepWanted(float* x, uint32_t width) const;
  // Of x [wanted rows, width], hidden states: writes them where they are wanted, and moves the rows
  // with logits to its front.
  void TakeHidden(float* x) const;

 private:
  // Neighbours among the wanted rows, of one sequence.
  struct Part {
    uint32_t rows;
    float* hidden;  // null: they have logits
  };

  const BatchLimits limits_;
  std::vector<uint32_t> tokens_;
  RowSet all_;
  RowSet wanted_;
  std::vector<uint32_t> wanted_rows_;  // their indexes among all rows, ascending
  std::vector<Part> parts_;            // of the wanted rows, in order
  uint32_t logits_rows_ = 0;
};

}  // namespace plumb::model
