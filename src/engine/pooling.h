// engine/pooling.h
// Hidden states of a prompt's rows to its embedding: their mean or the last of them, at length 1.
// The one idea: rows are added in the order of their positions, in f64, so that the result does not
// depend on how they were cut into steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/request.h"

namespace plumb::engine {

// Thread: one at a time.
class Pooler {
 public:
  // `width` > 0 values a row; `pooling` is not kNone (CHECK).
  Pooler(Pooling pooling, uint32_t width);

  // The next rows, [rows, width]. Of kLast only the last one counts.
  // kInternal: a value is infinite or not a number; the embedding is then lost.
  base::Status Add(std::span<const float> hidden);

  // When all rows were added, at least one: the embedding, divided by its length in f64 and rounded
  // once, [width]. The pooler is empty after it. kInternal: it has no direction, all values are 0.
  base::Status Finish();
  // Once it is finished; moves it out.
  std::vector<float> Take() { return std::move(embedding_); }

 private:
  const Pooling pooling_;
  uint64_t rows_ = 0;
  std::vector<double> sums_;      // [width]
  std::vector<float> embedding_;  // [width] once finished
};

}  // namespace plumb::engine
