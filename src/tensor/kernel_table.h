// tensor/kernel_table.h
// The functions that differ by CPU target. Every table computes the same bits (docs/numerics.md);
// tensor/ref is the judge. Callers use ops.h and attention.h, which check arguments and split work.
// All functions: no allocation, no threads, arguments already checked, pointers need no alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "tensor/activations.h"
#include "tensor/attention_task.h"
#include "tensor/cache_row_kernels.h"
#include "tensor/packed_matrix.h"
#include "tensor/rotary.h"

namespace plumb::tensor {

// Some panels times some rows: out[row][output] = product (+ bias[output]) (+ out[row][output]).
struct ProductTask {
  const PackedMatrix* matrix;
  uint32_t panel_begin, panel_end;
  uint32_t rows;                // of all the activations
  uint32_t row_begin, row_end;  // row_begin is a multiple of kTileRows; row_end too, or == rows
  const float* x;               // [rows, inputs]; read for float types
  const int16_t* quants;        // Activations' layout; read for quantised types
  const ActivationGroup* groups;
  const float* scales;
  float* out;         // [rows, outputs]
  const float* bias;  // [outputs] or null
  bool add;           // add to what `out` holds
};

// One row to quantise: group g goes to entry g * 32 * tile_rows of quants and g * tile_rows of
// groups.
struct QuantizeTask {
  const float* x;
  uint32_t inputs;  // a multiple of kGroupInputs
  uint32_t tile_rows;
  int16_t* quants;
  ActivationGroup* groups;
  float* scale;
};

struct BlockTask;  // block_task.h

struct KernelTable {
  std::string_view name;  // "scalar", "avx2", "avx512"
  void (*product)(const ProductTask&);
  void (*multiply_blocks)(const BlockTask&);
  void (*quantize)(const QuantizeTask&);
  void (*attention)(const AttentionTask&);
  void (*fold)(const FoldTask&);
  void (*store)(const StoreTask&);
  void (*rms_norm)(const float* x, const float* weight, float epsilon, uint32_t n, float* out);
  // out[i] = silu(gate[i]) * up[i]; out may be gate or up.
  void (*swiglu)(const float* gate, const float* up, uint32_t n, float* out);
  // out[i] = gelu(gate[i]) * up[i], the tanh form of GELU; out may be gate or up.
  void (*geglu)(const float* gate, const float* up, uint32_t n, float* out);
  void (*add)(const float* a, const float* b, uint32_t n, float* out);
  // out[i] = fma(scale, x[i], out[i])
  void (*add_scaled)(const float* x, float scale, uint32_t n, float* out);
  // out[i] = cap * tanh(x[i] / cap); out may be x.
  void (*soft_cap)(const float* x, float cap, uint64_t n, float* out);
  // In place, `heads` heads of head_dim values, the first `dims` of each rotated.
  void (*rotate)(float* x, uint32_t heads, uint32_t head_dim, uint32_t dims, RotaryPairing pairing,
                 const float* cosines, const float* sines);
  float (*log_sum_exp)(const float* x, uint64_t n);  // n >= 1
  // out[i] = exp(x[i]) / sum of exp(x); n >= 1, out may be x.
  void (*softmax)(const float* x, uint64_t n, float* out);
  CacheRowKernels cache_rows;
};

}  // namespace plumb::tensor
