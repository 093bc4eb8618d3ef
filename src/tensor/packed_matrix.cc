// tensor/packed_matrix.cc: from rows of the file to panels; one panel is one item of work.
// Every size is checked against the span before a byte is read.
#include "tensor/packed_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "tensor/float16.h"
#include "tensor/quant_group.h"

namespace plumb::tensor {
namespace {

// Lane `lane` of a float panel: the row's elements, one every 16.
void PackFloatLane(const std::byte* row, uint32_t inputs, uint32_t element_bytes, uint32_t lane,
                   std::byte* panel) {
  std::byte* out = panel + lane * element_bytes;
  for (uint32_t i = 0; i < inputs; ++i) {
    std::memcpy(out + size_t{i} * kPanelOutputs * element_bytes, row + size_t{i} * element_bytes,
                element_bytes);
  }
}

void StoreScale(float value, uint32_t scale_bytes, std::byte* vector, uint32_t lane) {
  if (scale_bytes == 2) {
    const uint16_t half = FloatToHalf(value);  // exact: the file's value is an f16
    std::memcpy(vector + 2 * lane, &half, 2);
  } else {
    std::memcpy(vector + 4 * lane, &value, 4);
  }
}

void PackGroupLane(const QuantGroup& group, const PanelLayout& layout, uint32_t lane,
                   std::byte* out) {
  const bool nibbles = layout.quant_bytes == 256;
  for (uint32_t quad = 0; quad < 8; ++quad) {
    std::byte* bytes = out + (nibbles ? quad / 2 : quad) * 64 + 4 * lane;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t shift = nibbles ? quad % 2 * 4 : 0;
      bytes[i] |= static_cast<std::byte>(group.quants[4 * quad + i] << shift);
    }
  }
  for (uint32_t half = 0; half < layout.scales; ++half) {
    StoreScale(group.scales[half], layout.scale_bytes, out + layout.scale_offset(half), lane);
  }
  if (layout.offsets) {
    StoreScale(group.offset, layout.scale_bytes, out + layout.offset_offset(), lane);
  }
}

uint64_t PanelBytes(DType dtype, uint64_t inputs) {
  if (IsQuantized(dtype)) return inputs / kGroupInputs * LayoutOf(dtype).group_bytes();
  return inputs * kPanelOutputs * Traits(dtype).block_bytes;
}

}  // namespace

base::Result<PackedMatrix> PackedMatrix::Pack(DType dtype, uint64_t outputs, uint64_t inputs,
                                              std::span<const std::byte> rows, ThreadPool& pool,
                                              WeightArena* arena) {
  if (outputs == 0 || outputs > kMatrixSideMax || inputs > kMatrixSideMax) {
    return base::InvalidArgument(
        "shape",
        fmt::format("a matrix of {} x {}: each side must be in [1, 2^30]", outputs, inputs));
  }
  ASSIGN_OR_RETURN(const uint64_t row_bytes, RowBytes(dtype, inputs));
  const auto file_bytes = base::CheckedMul(row_bytes, outputs);
  if (!file_bytes || *file_bytes != rows.size()) {
    return base::Corrupt(fmt::format("a {} matrix of {} x {} does not fill {} bytes", Name(dtype),
                                     outputs, inputs, rows.size()));
  }
  PackedMatrix matrix;
  matrix.dtype_ = dtype;
  matrix.outputs_ = static_cast<uint32_t>(outputs);
  matrix.inputs_ = static_cast<uint32_t>(inputs);
  matrix.panel_bytes_ = PanelBytes(dtype, inputs);
  const auto bytes = base::CheckedMul(matrix.panel_bytes_, matrix.panels());
  if (!bytes) return base::InvalidArgument("shape", "the matrix is too large");
  std::byte* panels = nullptr;
  if (arena != nullptr) {
    ASSIGN_OR_RETURN(panels, arena->Allocate(*bytes));
  } else {
    ASSIGN_OR_RETURN(matrix.own_memory_, AlignedBuffer::Allocate(*bytes));
    panels = matrix.own_memory_.data();
  }
  matrix.data_ = panels;

  const PanelLayout layout = LayoutOf(dtype);
  pool.ParallelFor(matrix.panels(), [&](uint32_t index) {
    std::byte* panel = panels + index * matrix.panel_bytes_;
    const uint32_t first = index * kPanelOutputs;
    const uint32_t lanes = std::min(kPanelOutputs, matrix.outputs_ - first);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const std::byte* row = rows.data() + (first + lane) * row_bytes;
      if (!IsQuantized(dtype)) {
        PackFloatLane(row, matrix.inputs_, Traits(dtype).block_bytes, lane, panel);
        continue;
      }
      for (uint32_t g = 0; g < matrix.inputs_ / kGroupInputs; ++g) {
        PackGroupLane(ReadGroup(dtype, row, g), layout, lane,
                      panel + uint64_t{g} * layout.group_bytes());
      }
    }
  });
  return matrix;
}

}  // namespace plumb::tensor
