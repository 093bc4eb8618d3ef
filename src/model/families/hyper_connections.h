// model/families/hyper_connections.h
// Hyper-connections: a row is several parallel streams; a sub-layer reads one mix of them and its
// output is spread over all, while the streams are mixed among themselves by a matrix that is
// doubly stochastic (Sinkhorn's iteration). "Shifted": the mix that a sub-layer reads was computed
// one sub-layer earlier. Formulas: docs/numerics_deepseek_v41.md, "Streams" (sources there).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_weights.h"
#include "tensor/ops.h"

namespace plumb::model {

constexpr uint32_t kStreamsMax = 8;

struct HyperShape {
  uint32_t streams = 0;  // m, at most kStreamsMax
  uint32_t hidden = 0;   // a multiple of 32
  uint32_t iterations = 0;
  float epsilon = 0;      // of the mixes
  float rms_epsilon = 0;  // of the streams' norm
};

// What a sub-layer's mix says of each row.
struct HyperMix {
  float* read = nullptr;   // [rows, m]: weights of the streams in the next sub-layer's input
  float* write = nullptr;  // [rows, m]: of the output in each stream
  float* carry = nullptr;  // [rows, m, m]: old stream k in new stream n, at k * m + n
};

// Thread: the model's. A row depends on its own streams alone. No allocation after Create.
class HyperConnections {
 public:
  // kOverloaded: out of memory.
  static base::Result<HyperConnections> Create(const HyperShape& shape, uint32_t rows_max);

  // The mix of a sub-layer from the streams [rows, m, hidden] in front of it. It is valid until the
  // second Mix after this one: the next sub-layer's overlaps with it.
  HyperMix Mix(tensor::Compute compute, const HyperWeights& weights, const float* streams,
               uint32_t rows);
  // out [rows, hidden] = sum over k of read[k] streams[k]. `read` [rows, m].
  void Collapse(tensor::Compute compute, const float* streams, const float* read, uint32_t rows,
                float* out) const;
  // streams[n] = write[n] y + sum over k of carry[k][n] streams[k], in place; y [rows, hidden].
  void Update(tensor::Compute compute, const HyperMix& mix, const float* y, uint32_t rows,
              float* streams) const;

 private:
  explicit HyperConnections(const HyperShape& shape) : shape_(shape) {}
  void MixRow(const HyperWeights& weights, float inverse, const float* sums, float* read,
              float* write, float* carry) const;

  HyperShape shape_;
  uint64_t rows_max_ = 0;
  uint32_t turn_ = 0;     // which half of mixes_ is written next
  Scratch<float> sums_;   // [rows, 2 m + m m]
  Scratch<float> mixes_;  // two of read, write, carry
};

}  // namespace plumb::model
