// tensor/block_matrix.cc: argument checks, and one list of items for all products of a call. An
// item is some outputs times some rows of one product; how work is cut never changes a result.
#include "tensor/block_matrix.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/block_task.h"
#include "tensor/float16.h"
#include "tensor/small_float.h"

namespace plumb::tensor {
namespace {

constexpr uint32_t kItemsPerThread = 6;
// An item shorter than this is not worth claiming; about 5 microseconds.
constexpr uint64_t kItemCyclesMin = 1 << 14;
// Up to so many rows weights are read once, by one item, whatever the target; more are cut.
constexpr uint32_t kRowsTogether = 4;
constexpr uint32_t kItemRowsMax = 48;
constexpr uint32_t kItemOutputsMax = 64;  // with more rows than kRowsTogether

constexpr uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

bool HasScales(BlockFormat format) {
  return format == BlockFormat::kF8Block32 || format == BlockFormat::kF4Group32;
}

uint64_t ScaleRowBytes(const BlockMatrix& matrix) {
  return HasScales(matrix.format) ? DivideUp(matrix.inputs, kScaleBlock) : 0;
}

void CheckMatrix(const BlockMatrix& matrix) {
  CHECK(matrix.inputs >= 1 && matrix.weights != nullptr) << matrix.inputs;
  CHECK(HasScales(matrix.format) == (matrix.scales != nullptr));
  CHECK(matrix.format != BlockFormat::kF4Group32 || matrix.inputs % kScaleBlock == 0)
      << matrix.inputs;
}

// What an output costs, roughly, in cycles: its weights come from memory, and each is multiplied
// with every row.
uint64_t CyclesOf(const BlockMatrix& matrix, uint64_t rows) {
  return BlockRowBytes(matrix.format, matrix.inputs) / 4 + matrix.inputs * rows / 16 + 1;
}

// How one product is cut.
struct Cut {
  uint32_t outputs = 0;  // of an item
  uint32_t output_items = 0;
  uint32_t rows = 0;  // of an item
  uint32_t row_items = 0;
  uint64_t items() const { return uint64_t{output_items} * row_items; }
};

Cut CutProduct(const BlockProduct& product, uint64_t item_cycles) {
  Cut cut;
  if (product.rows == 0 || product.matrix.outputs == 0) return cut;
  const bool whole = product.rows <= kRowsTogether;
  cut.row_items = whole ? 1 : static_cast<uint32_t>(DivideUp(product.rows, kItemRowsMax));
  cut.rows = static_cast<uint32_t>(DivideUp(product.rows, cut.row_items));
  const uint64_t affordable = item_cycles / CyclesOf(product.matrix, cut.rows);
  const uint32_t unit = !whole                           ? 2 * kOutputsUnit
                        : affordable >= kOutputsTogether ? kOutputsTogether
                                                         : kOutputsUnit;
  const uint64_t most = whole ? DivideUp(product.matrix.outputs, unit) * unit : kItemOutputsMax;
  const uint64_t wanted = affordable / unit * unit;
  cut.outputs = static_cast<uint32_t>(std::clamp<uint64_t>(wanted, unit, most));
  cut.output_items = static_cast<uint32_t>(DivideUp(product.matrix.outputs, cut.outputs));
  return cut;
}

void RunItem(const KernelTable& kernels, const BlockProduct& product, const Cut& cut,
             uint32_t item) {
  // Items next to each other share the rows.
  const uint32_t output = item % cut.output_items * cut.outputs;
  const uint32_t row = item / cut.output_items * cut.rows;
  kernels.multiply_blocks({
      .matrix = &product.matrix,
      .output_begin = output,
      .output_end = std::min(product.matrix.outputs - output, cut.outputs) + output,
      .rows = std::min(product.rows - row, cut.rows),
      .x = product.x + row * product.x_stride,
      .x_stride = product.x_stride,
      .out = product.out + row * product.out_stride,
      .out_stride = product.out_stride,
  });
}

// As products take it: NaN is 480 there.
float WeightOfE4m3(uint8_t code) {
  if ((code & 0x7f) == kE4m3Nan) return code == kE4m3Nan ? 480.0f : -480.0f;
  return E4m3Value(code);
}

uint8_t ByteAt(const std::byte* bytes, uint64_t index) {
  return static_cast<uint8_t>(bytes[index]);
}

}  // namespace

BlockMatrix BlockMatrix::Rows(uint32_t begin, uint32_t count) const {
  CHECK(begin <= outputs && count <= outputs - begin) << begin << " + " << count;
  BlockMatrix part = *this;
  part.outputs = count;
  part.weights += begin * BlockRowBytes(format, inputs);
  if (format == BlockFormat::kF8Block32) {
    CHECK(begin % kScaleBlock == 0) << begin;
    part.scales += begin / kScaleBlock * ScaleRowBytes(*this);
  } else if (HasScales(format)) {
    part.scales += begin * ScaleRowBytes(*this);
  }
  return part;
}

uint64_t BlockMatrix::weight_bytes() const {
  const uint64_t scale_rows =
      format == BlockFormat::kF8Block32 ? DivideUp(outputs, kScaleBlock) : outputs;
  return outputs * BlockRowBytes(format, inputs) + scale_rows * ScaleRowBytes(*this);
}

void BlockLinear(Compute compute, std::span<const BlockProduct> products) {
  CHECK(products.size() <= kBlockProductsMax) << products.size();
  uint64_t cycles = 0;
  for (const BlockProduct& product : products) {
    if (product.rows == 0) continue;
    CheckMatrix(product.matrix);
    CHECK(product.x != nullptr && product.out != nullptr);
    CHECK(product.rows == 1 || (product.x_stride >= product.matrix.inputs &&
                                product.out_stride >= product.matrix.outputs))
        << product.x_stride << " and " << product.out_stride << " for " << product.matrix.outputs
        << " x " << product.matrix.inputs;
    cycles += product.matrix.outputs * CyclesOf(product.matrix, product.rows);
  }
  const uint64_t item_cycles =
      std::max(kItemCyclesMin, cycles / (uint64_t{compute.pool.threads()} * kItemsPerThread));
  uint32_t ends[kBlockProductsMax];  // of each product's items, among all
  uint64_t items = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    items += CutProduct(products[i], item_cycles).items();
    CHECK(items <= UINT32_MAX) << items;
    ends[i] = static_cast<uint32_t>(items);
  }
  compute.pool.ParallelFor(static_cast<uint32_t>(items), [&](uint32_t item) {
    const auto index =
        static_cast<size_t>(std::upper_bound(ends, ends + products.size(), item) - ends);
    const uint32_t first = index == 0 ? 0 : ends[index - 1];
    RunItem(compute.kernels, products[index], CutProduct(products[index], item_cycles),
            item - first);
  });
}

void BlockRow(const BlockMatrix& matrix, uint64_t row, float* out) {
  CheckMatrix(matrix);
  CHECK(row < matrix.outputs) << row << " of " << matrix.outputs;
  const std::byte* weights = matrix.weights + row * BlockRowBytes(matrix.format, matrix.inputs);
  const uint64_t scale_row = matrix.format == BlockFormat::kF8Block32 ? row / kScaleBlock : row;
  const std::byte* scales = matrix.scales;  // null where there are none
  if (scales != nullptr) scales += scale_row * ScaleRowBytes(matrix);
  for (uint32_t i = 0; i < matrix.inputs; ++i) {
    switch (matrix.format) {
      case BlockFormat::kF32:
        out[i] = LoadFloat(weights + 4 * uint64_t{i});
        break;
      case BlockFormat::kBf16:
        out[i] = BFloat16ToFloat(LoadU16(weights + 2 * uint64_t{i}));
        break;
      case BlockFormat::kF8Block32:
        out[i] = WeightOfE4m3(ByteAt(weights, i)) * E8m0Value(ByteAt(scales, i / kScaleBlock));
        break;
      case BlockFormat::kF4Group32:
        out[i] = E2m1Value(static_cast<uint8_t>(ByteAt(weights, i / 2) >> i % 2 * 4)) *
                 E8m0Value(ByteAt(scales, i / kScaleBlock));
        break;
    }
  }
}

}  // namespace plumb::tensor
