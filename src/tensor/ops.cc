// tensor/ops.cc: argument checks and the split of work into items. An item is large enough (tens of
// microseconds) that claiming it costs nothing, and there are several for each thread, so that a
// thread that loses its processor does not hold up the others for long.
#include "tensor/ops.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::tensor {
namespace {

constexpr uint32_t kItemsPerThread = 6;
// Below this many bytes of weights or values an item is not worth splitting further.
constexpr uint64_t kItemBytesMin = 16 << 10;
// Activations that one item walks for each panel stay in the core's second-level cache.
constexpr uint64_t kRowBlockBytes = 256 << 10;

uint32_t DivideUp(uint64_t a, uint64_t b) { return static_cast<uint32_t>((a + b - 1) / b); }

// Rows per item for row-wise functions over rows of n values.
template <typename F>
void ForRows(Compute compute, uint32_t rows, uint32_t n, const F& fn) {
  const uint64_t bytes = std::max<uint64_t>(n, 1) * sizeof(float);
  const uint32_t rows_per_item = DivideUp(kItemBytesMin, bytes);
  const uint32_t items = DivideUp(rows, rows_per_item);
  compute.pool.ParallelFor(items, [&](uint32_t item) {
    const uint32_t begin = item * rows_per_item;
    const uint32_t end = std::min(rows, begin + rows_per_item);
    for (uint32_t row = begin; row < end; ++row) fn(row);
  });
}

void QuantizeRows(Compute compute, const float* x, uint32_t rows, uint32_t inputs,
                  Activations& scratch) {
  ForRows(compute, rows, inputs, [&](uint32_t row) {
    const uint32_t tile = row / kTileRows * kTileRows;
    compute.kernels.quantize(
        {.x = x + size_t{row} * inputs,
         .inputs = inputs,
         .tile_rows = std::min(kTileRows, rows - tile),
         .quants = scratch.quants() + size_t{tile} * inputs + (row - tile) * kGroupInputs,
         .groups = scratch.groups() + size_t{tile} * (inputs / kGroupInputs) + (row - tile),
         .scale = scratch.scales() + row});
  });
}

// How one matrix is cut: items of some panels times some rows.
struct Cut {
  uint32_t panels_per_item;
  uint32_t panel_items;
  uint32_t rows_per_item;
  uint32_t row_items;
  uint32_t items() const { return panel_items * row_items; }
};

Cut CutProduct(const PackedMatrix& matrix, uint32_t rows, uint64_t total_bytes, uint32_t threads) {
  Cut cut;
  const uint64_t row_bytes =
      uint64_t{matrix.inputs()} *
      (LayoutOf(matrix.dtype()).quantized() ? sizeof(int16_t) : sizeof(float));
  const uint64_t block_rows = std::max<uint64_t>(kRowBlockBytes / row_bytes, 8 * kTileRows);
  cut.rows_per_item =
      static_cast<uint32_t>(std::min<uint64_t>(rows, block_rows / kTileRows * kTileRows));
  cut.row_items = DivideUp(rows, cut.rows_per_item);
  // Bytes of weights an item should walk, over all row items and all matrices of the call.
  const uint64_t target = std::max<uint64_t>(
      kItemBytesMin, total_bytes * cut.row_items / (uint64_t{threads} * kItemsPerThread));
  cut.panels_per_item = static_cast<uint32_t>(
      std::clamp<uint64_t>(target / matrix.panel_bytes(), 1, matrix.panels()));
  cut.panel_items = DivideUp(matrix.panels(), cut.panels_per_item);
  return cut;
}

}  // namespace

void Linear(Compute compute, const float* x, uint32_t rows, uint32_t inputs, Activations& scratch,
            std::span<const Product> products) {
  CHECK(products.size() <= kProductsMax) << products.size();
  if (rows == 0 || products.empty()) return;
  bool quantized = false;
  uint64_t total_bytes = 0;
  for (const Product& product : products) {
    CHECK(product.matrix->outputs() > 0 && product.matrix->inputs() == inputs)
        << product.matrix->outputs() << " x " << product.matrix->inputs() << " for " << inputs;
    quantized = quantized || LayoutOf(product.matrix->dtype()).quantized();
    total_bytes += product.matrix->size_bytes();
  }
  if (quantized) {
    CHECK(rows <= scratch.rows_max() && inputs <= scratch.inputs_max()) << rows << " " << inputs;
    QuantizeRows(compute, x, rows, inputs, scratch);
  }
  Cut cuts[kProductsMax];
  uint32_t items = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    cuts[i] = CutProduct(*products[i].matrix, rows, total_bytes, compute.pool.threads());
    items += cuts[i].items();
  }
  compute.pool.ParallelFor(items, [&](uint32_t item) {
    size_t index = 0;
    while (item >= cuts[index].items()) item -= cuts[index++].items();
    const Cut& cut = cuts[index];
    const Product& product = products[index];
    const uint32_t panel = item % cut.panel_items * cut.panels_per_item;
    const uint32_t row = item / cut.panel_items * cut.rows_per_item;
    compute.kernels.product({
        .matrix = product.matrix,
        .panel_begin = panel,
        .panel_end = std::min(product.matrix->panels(), panel + cut.panels_per_item),
        .rows = rows,
        .row_begin = row,
        .row_end = std::min(rows, row + cut.rows_per_item),
        .x = x,
        .quants = scratch.quants(),
        .groups = scratch.groups(),
        .scales = scratch.scales(),
        .out = product.out,
        .bias = product.bias,
        .add = product.add,
    });
  });
}

void RmsNorm(Compute compute, const float* x, uint32_t rows, uint32_t n, const float* weight,
             float epsilon, float* out) {
  CHECK(n > 0);
  ForRows(compute, rows, n, [&](uint32_t row) {
    compute.kernels.rms_norm(x + size_t{row} * n, weight, epsilon, n, out + size_t{row} * n);
  });
}

void SwiGlu(Compute compute, const float* gate, const float* up, uint32_t rows, uint32_t n,
            float* out) {
  ForRows(compute, rows, n, [&](uint32_t row) {
    const size_t first = size_t{row} * n;
    compute.kernels.swiglu(gate + first, up + first, n, out + first);
  });
}

void Add(Compute compute, const float* a, const float* b, uint32_t rows, uint32_t n, float* out) {
  ForRows(compute, rows, n, [&](uint32_t row) {
    const size_t first = size_t{row} * n;
    compute.kernels.add(a + first, b + first, n, out + first);
  });
}

void Rotate(Compute compute, const RotaryTable& table, RotaryPairing pairing,
            std::span<const uint32_t> positions, uint32_t heads, uint32_t head_dim, float* x) {
  CHECK(table.dims() <= head_dim) << table.dims() << " of " << head_dim;
  for (const uint32_t position : positions) {
    CHECK(position < table.positions_max()) << position << " of " << table.positions_max();
  }
  const uint32_t n = heads * head_dim;
  ForRows(compute, static_cast<uint32_t>(positions.size()), n, [&](uint32_t row) {
    compute.kernels.rotate(x + size_t{row} * n, heads, head_dim, table.dims(), pairing,
                           table.cosines(positions[row]), table.sines(positions[row]));
  });
}

float LogSumExp(Compute compute, std::span<const float> x) {
  CHECK(!x.empty());
  return compute.kernels.log_sum_exp(x.data(), x.size());
}

void GeGlu(Compute compute, const float* gate, const float* up, uint32_t rows, uint32_t n,
           float* out) {
  ForRows(compute, rows, n, [&](uint32_t row) {
    const size_t first = size_t{row} * n;
    compute.kernels.geglu(gate + first, up + first, n, out + first);
  });
}

void SoftCap(Compute compute, float cap, uint32_t rows, uint32_t n, float* x) {
  CHECK(cap > 0) << cap;
  ForRows(compute, rows, n, [&](uint32_t row) {
    float* first = x + size_t{row} * n;
    compute.kernels.soft_cap(first, cap, n, first);
  });
}

void Softmax(Compute compute, uint32_t rows, uint32_t n, float* x) {
  CHECK(n > 0);
  ForRows(compute, rows, n, [&](uint32_t row) {
    float* first = x + size_t{row} * n;
    compute.kernels.softmax(first, n, first);
  });
}

void GatherRows(Compute compute, const float* x, std::span<const uint32_t> indexes, uint32_t n,
                float* out) {
  ForRows(compute, static_cast<uint32_t>(indexes.size()), n, [&](uint32_t row) {
    std::copy_n(x + size_t{indexes[row]} * n, n, out + size_t{row} * n);
  });
}

void AddScaledRows(Compute compute, const float* x, std::span<const float> scales,
                   std::span<const uint32_t> indexes, uint32_t n, float* out) {
  CHECK(scales.size() == indexes.size()) << scales.size() << " for " << indexes.size();
  ForRows(compute, static_cast<uint32_t>(indexes.size()), n, [&](uint32_t row) {
    compute.kernels.add_scaled(x + size_t{row} * n, scales[row], n, out + size_t{indexes[row]} * n);
  });
}

}  // namespace plumb::tensor
