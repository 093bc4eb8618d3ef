// model/families/hyper_connections.cc: the mixes of a row, then sums over few streams, column by
// column. Every sum over streams is sequential in the order of streams.
#include "model/families/hyper_connections.h"

#include <cmath>

#include "base/check.h"
#include "tensor/exact_math.h"

namespace plumb::model {
namespace {

constexpr uint32_t kColumns = 32;  // computed together, in registers

// Rows of `matrix` [m, m] become exp / sum of exp, and all of it a little more than zero.
void SoftmaxRows(float* matrix, uint32_t m, float epsilon) {
  for (uint32_t k = 0; k < m; ++k) {
    float* row = matrix + k * m;
    float largest = row[0];
    for (uint32_t n = 1; n < m; ++n) largest = row[n] > largest ? row[n] : largest;
    float sum = 0;
    for (uint32_t n = 0; n < m; ++n) {
      row[n] = tensor::ExactExp(row[n] - largest);
      sum = sum + row[n];
    }
    for (uint32_t n = 0; n < m; ++n) row[n] = row[n] / sum + epsilon;
  }
}

void DivideRows(float* matrix, uint32_t m, float epsilon) {
  for (uint32_t k = 0; k < m; ++k) {
    float* row = matrix + k * m;
    float sum = 0;
    for (uint32_t n = 0; n < m; ++n) sum = sum + row[n];
    const float divisor = sum + epsilon;
    for (uint32_t n = 0; n < m; ++n) row[n] = row[n] / divisor;
  }
}

void DivideColumns(float* matrix, uint32_t m, float epsilon) {
  for (uint32_t n = 0; n < m; ++n) {
    float sum = 0;
    for (uint32_t k = 0; k < m; ++k) sum = sum + matrix[k * m + n];
    const float divisor = sum + epsilon;
    for (uint32_t k = 0; k < m; ++k) matrix[k * m + n] = matrix[k * m + n] / divisor;
  }
}

}  // namespace

base::Result<HyperConnections> HyperConnections::Create(const HyperShape& shape,
                                                        uint32_t rows_max) {
  CHECK(shape.streams >= 1 && shape.streams <= kStreamsMax) << shape.streams;
  CHECK(shape.hidden % kColumns == 0) << shape.hidden;
  HyperConnections self(shape);
  self.rows_max_ = rows_max;
  const uint64_t values = uint64_t{shape.streams} * (2 + shape.streams);
  ASSIGN_OR_RETURN(self.sums_, Scratch<float>::Allocate(rows_max * values));
  ASSIGN_OR_RETURN(self.mixes_, Scratch<float>::Allocate(2 * rows_max * values));
  return self;
}

void HyperConnections::MixRow(const HyperWeights& weights, float inverse, const float* sums,
                              float* read, float* write, float* carry) const {
  const uint32_t m = shape_.streams;
  const float* base = weights.base.data();
  for (uint32_t n = 0; n < m; ++n) {
    const float z = sums[n] * inverse;
    read[n] = Sigmoid(z * weights.scale[0] + base[n]) + shape_.epsilon;
  }
  for (uint32_t n = 0; n < m; ++n) {
    const float z = sums[m + n] * inverse;
    write[n] = 2.0f * Sigmoid(z * weights.scale[1] + base[m + n]);
  }
  for (uint32_t i = 0; i < m * m; ++i) {
    const float z = sums[2 * m + i] * inverse;
    carry[i] = z * weights.scale[2] + base[2 * m + i];
  }
  SoftmaxRows(carry, m, shape_.epsilon);
  DivideColumns(carry, m, shape_.epsilon);
  for (uint32_t i = 1; i < shape_.iterations; ++i) {
    DivideRows(carry, m, shape_.epsilon);
    DivideColumns(carry, m, shape_.epsilon);
  }
}

HyperMix HyperConnections::Mix(tensor::Compute compute, const HyperWeights& weights,
                               const float* streams, uint32_t rows) {
  CHECK(rows <= rows_max_) << rows;
  const uint32_t m = shape_.streams;
  const uint64_t width = uint64_t{m} * shape_.hidden;
  const uint64_t values = uint64_t{m} * (2 + m);
  Multiply(compute, weights.fn, streams, rows, sums_.data());
  float* read = mixes_.data() + (turn_ == 0 ? 0 : rows_max_ * values);
  turn_ = 1 - turn_;
  float* write = read + rows_max_ * m;
  float* carry = write + rows_max_ * m;
  ForEachRow(compute, rows, width, [&](uint32_t row) {
    const float mean = SumOfSquares(streams + row * width, width) / static_cast<float>(width);
    const float inverse = 1.0f / std::sqrt(mean + shape_.rms_epsilon);
    MixRow(weights, inverse, sums_.data() + row * values, read + row * m, write + row * m,
           carry + uint64_t{row} * m * m);
  });
  return {read, write, carry};
}

void HyperConnections::Collapse(tensor::Compute compute, const float* streams, const float* read,
                                uint32_t rows, float* out) const {
  const uint32_t m = shape_.streams;
  const uint64_t hidden = shape_.hidden;
  ForEachRow(compute, rows, m * hidden, [&](uint32_t row) {
    const float* weight = read + row * m;
    for (uint64_t first = 0; first < hidden; first += kColumns) {
      const float* x = streams + row * m * hidden + first;
      float sums[kColumns];
      for (uint32_t i = 0; i < kColumns; ++i) sums[i] = weight[0] * x[i];
      for (uint32_t k = 1; k < m; ++k) {
        for (uint32_t i = 0; i < kColumns; ++i) sums[i] = sums[i] + weight[k] * x[k * hidden + i];
      }
      std::copy_n(sums, kColumns, out + row * hidden + first);
    }
  });
}

void HyperConnections::Update(tensor::Compute compute, const HyperMix& mix, const float* y,
                              uint32_t rows, float* streams) const {
  const uint32_t m = shape_.streams;
  const uint64_t hidden = shape_.hidden;
  ForEachRow(compute, rows, m * hidden, [&](uint32_t row) {
    const float* write = mix.write + row * m;
    const float* carry = mix.carry + uint64_t{row} * m * m;
    for (uint64_t first = 0; first < hidden; first += kColumns) {
      const float* added = y + row * hidden + first;
      float* x = streams + row * m * hidden + first;
      float sums[kStreamsMax][kColumns];
      for (uint32_t n = 0; n < m; ++n) {
        for (uint32_t i = 0; i < kColumns; ++i) sums[n][i] = write[n] * added[i];
        for (uint32_t k = 0; k < m; ++k) {
          const float weight = carry[k * m + n];
          for (uint32_t i = 0; i < kColumns; ++i) {
            sums[n][i] = sums[n][i] + weight * x[k * hidden + i];
          }
        }
      }
      for (uint32_t n = 0; n < m; ++n) std::copy_n(sums[n], kColumns, x + n * hidden);
    }
  });
}

}  // namespace plumb::model
