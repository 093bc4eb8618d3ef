// model/hf_rows.cc
// Rows of a mapped tensor: a view where the file holds them as they are wanted, else put together
// in a buffer, row by row. F8: value(byte) * scale of its block, in f32, rounded once, as the
// published reference code does it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "model/hf_tensors.h"
#include "tensor/dequantize.h"
#include "tensor/dtype.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;

tensor::DType FloatType(StoredType type) {
  CHECK(type != StoredType::kOther && type != StoredType::kF8E4M3) << static_cast<int>(type);
  if (type == StoredType::kF16) return tensor::DType::kF16;
  if (type == StoredType::kBF16) return tensor::DType::kBF16;
  return tensor::DType::kF32;
}

std::span<const std::byte> StoredRow(const SafetensorsTensor& stored, uint64_t row) {
  const uint64_t size = stored.row_elements() * stored.element_bytes;
  return stored.bytes.subspan(row * size, size);
}

// `row` of the piece's stored tensor as f32; `scales` is scratch.
Status ExpandF8Row(const HfPiece& piece, uint64_t row, const ScaleBlock& block,
                   std::vector<float>& scales, std::span<float> out) {
  static const auto kValues = [] {
    std::array<float, 256> values{};
    for (uint32_t i = 0; i < 256; ++i) values[i] = FromF8E4M3(static_cast<uint8_t>(i));
    return values;
  }();
  scales.resize(piece.scale->row_elements());
  RETURN_IF_ERROR(tensor::DequantizeRow(FloatType(piece.scale->type),
                                        StoredRow(*piece.scale, row / block.outputs), scales));
  const std::span<const std::byte> bytes = StoredRow(*piece.stored, row);
  for (uint64_t begin = 0, i = 0; begin < out.size(); begin += block.inputs, ++i) {
    const uint64_t end = std::min<uint64_t>(begin + block.inputs, out.size());
    for (uint64_t at = begin; at < end; ++at) {
      out[at] = kValues[static_cast<uint8_t>(bytes[at])] * scales[i];
    }
  }
  return base::OkStatus();
}

// Row `row` of the tensor in file order, given its order here.
uint64_t Unpaired(uint64_t row, uint64_t head_dim) {
  const uint64_t head = row / head_dim, within = row % head_dim;
  return head * head_dim + (within % 2) * (head_dim / 2) + within / 2;
}

}  // namespace

float FromF8E4M3(uint8_t bits) {
  const int exponent = (bits >> 3) & 0xf;
  const int mantissa = bits & 0x7;
  float value = 0;
  if (exponent == 15 && mantissa == 7) {
    value = std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -9);
  } else {
    value = std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  }
  return (bits & 0x80) != 0 ? -value : value;
}

Result<std::span<const std::byte>> HfTensors::Rows(const GgufTensor& tensor, RowRange range,
                                                   tensor::AlignedBuffer& scratch) const {
  const auto index = static_cast<size_t>(&tensor - tensors_.data());
  CHECK(index < tensors_.size()) << "a tensor of another checkpoint";
  const uint64_t rows = tensor.elements / tensor.dims[0];
  CHECK(range.first <= rows && range.count <= rows - range.first) << tensor.name;
  if (range.count == 0) return std::span<const std::byte>();  // no piece holds row `rows`
  if (!tensor.bytes.empty()) {
    const uint64_t row_bytes = tensor.bytes.size() / rows;
    return tensor.bytes.subspan(range.first * row_bytes, range.count * row_bytes);
  }
  const HfOrigin& origin = origins_[index];
  const uint64_t piece_rows = origin.pieces[0].rows;
  const HfPiece& first = origin.pieces[range.first / piece_rows];
  const bool in_one = range.count <= piece_rows - range.first % piece_rows;
  const bool as_stored = origin.heads == 0 && !origin.add_one && first.scale == nullptr;
  const uint64_t stored_row_bytes = tensor.dims[0] * first.stored->element_bytes;
  if (in_one && as_stored) {
    const uint64_t row = first.first_row + range.first % piece_rows;
    const auto view =
        first.stored->bytes.subspan(row * stored_row_bytes, range.count * stored_row_bytes);
    if (reinterpret_cast<uintptr_t>(view.data()) % first.stored->element_bytes == 0) return view;
  }

  const bool expanded = origin.add_one || first.scale != nullptr;
  const uint64_t row_bytes = expanded ? tensor.dims[0] * sizeof(float) : stored_row_bytes;
  ASSIGN_OR_RETURN(scratch, tensor::AlignedBuffer::Allocate(range.count * row_bytes));
  std::vector<float> scales;
  for (uint64_t i = 0; i < range.count; ++i) {
    const bool vector = tensor.dims_count == 1;
    uint64_t row = range.first + i;
    if (origin.heads != 0 && !vector) row = Unpaired(row, rows / origin.heads);
    const HfPiece& piece = origin.pieces[row / piece_rows];
    row = piece.first_row + row % piece_rows;
    std::byte* out = scratch.data() + i * row_bytes;
    const std::span floats(reinterpret_cast<float*>(out), tensor.dims[0]);
    if (piece.scale != nullptr) {
      RETURN_IF_ERROR(ExpandF8Row(piece, row, block_, scales, floats));
      continue;
    }
    const std::span<const std::byte> stored = StoredRow(*piece.stored, row);
    if (origin.add_one) {
      RETURN_IF_ERROR(tensor::DequantizeRow(FloatType(piece.stored->type), stored, floats));
      for (float& value : floats) value += 1.0f;
    } else if (origin.heads != 0 && vector) {
      const uint64_t size = piece.stored->element_bytes;
      for (uint64_t at = 0; at < tensor.dims[0]; ++at) {
        const uint64_t from = Unpaired(at, tensor.dims[0] / origin.heads);
        std::memcpy(out + at * size, stored.data() + from * size, size);
      }
    } else {
      std::memcpy(out, stored.data(), stored.size());
    }
  }
  return std::span<const std::byte>(scratch.data(), scratch.size());
}

}  // namespace plumb::model
