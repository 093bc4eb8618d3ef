// tensor/ops.h
// What a model's Forward is written in: products and row-wise functions over a batch of rows, split
// over the pool. A row's result depends on that row alone, bit for bit. Shapes are row-major,
// dense; nothing is allocated; wrong shapes are bugs (CHECK). Attention: attention.h.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/activations.h"
#include "tensor/kernel_table.h"
#include "tensor/packed_matrix.h"
#include "tensor/rotary.h"
#include "tensor/thread_pool.h"

namespace plumb::tensor {

// Where tensor operations run. Borrowed for the call. Thread: the pool's one caller.
struct Compute {
  ThreadPool& pool;
  const KernelTable& kernels;
};

constexpr uint32_t kProductsMax = 8;

// One of several products that share their input (query, key, value; gate, up).
struct Product {
  const PackedMatrix* matrix;   // [outputs, inputs]
  float* out;                   // [rows, outputs]
  const float* bias = nullptr;  // [outputs]
  bool add = false;             // out = out + (product + bias), for residual streams
};

// Computes all `products` (at most kProductsMax) of x [rows, inputs] in one fork-join.
// `scratch` holds the quantised rows: rows <= rows_max, inputs <= inputs_max; float types ignore
// it. No `out` may overlap x or another out.
void Linear(Compute compute, const float* x, uint32_t rows, uint32_t inputs, Activations& scratch,
            std::span<const Product> products);

// out = x / sqrt(mean(x^2) + epsilon) * weight for each row of n; out may be x. Also for heads:
// rows = rows * heads, n = head_dim.
void RmsNorm(Compute compute, const float* x, uint32_t rows, uint32_t n, const float* weight,
             float epsilon, float* out);

// out = silu(gate) * up, [rows, n]; out may be gate or up.
void SwiGlu(Compute compute, const float* gate, const float* up, uint32_t rows, uint32_t n,
            float* out);

// out = a + b, [rows, n]; out may be a or b.
void Add(Compute compute, const float* a, const float* b, uint32_t rows, uint32_t n, float* out);

// Rotates x [positions.size(), heads, head_dim] in place; each position < table.positions_max(),
// table.dims() <= head_dim.
void Rotate(Compute compute, const RotaryTable& table, RotaryPairing pairing,
            std::span<const uint32_t> positions, uint32_t heads, uint32_t head_dim, float* x);

// log(sum(exp(x))) of a vocabulary row; not empty. On the caller's thread.
float LogSumExp(Compute compute, std::span<const float> x);

// out = gelu(gate) * up (tanh form), [rows, n]; out may be gate or up.
void GeGlu(Compute compute, const float* gate, const float* up, uint32_t rows, uint32_t n,
           float* out);

// x = cap * tanh(x / cap), [rows, n], in place; cap > 0.
void SoftCap(Compute compute, float cap, uint32_t rows, uint32_t n, float* x);

// Each row of n becomes exp(x) / sum(exp(x)), in place; n > 0.
void Softmax(Compute compute, uint32_t rows, uint32_t n, float* x);

// out[i] = x[indexes[i]] for rows of n; out [indexes.size(), n] must not overlap x.
void GatherRows(Compute compute, const float* x, std::span<const uint32_t> indexes, uint32_t n,
                float* out);

// out[indexes[i]] += scales[i] * x[i], fused, for rows of n; no index occurs twice.
void AddScaledRows(Compute compute, const float* x, std::span<const float> scales,
                   std::span<const uint32_t> indexes, uint32_t n, float* out);

}  // namespace plumb::tensor
