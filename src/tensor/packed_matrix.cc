// tensor/packed_matrix.cc: from rows of the file to panels; one panel is one item of work.
// Every size is checked against the span before a byte is read.
#include "tensor/packed_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
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

// Exact: the file's value is an f16.
void StoreHalf(float value, std::byte* vector, uint32_t lane) {
  const uint16_t half = FloatToHalf(value);
  std::memcpy(vector + 2 * lane, &half, 2);
}

// Four quants of a quad as a word: shifts of whole words move each byte alike.
uint32_t QuadWord(const uint8_t* quants) {
  uint32_t word = 0;
  std::memcpy(&word, quants, 4);
  return word;
}
void StoreWord(uint32_t word, std::byte* place) { std::memcpy(place, &word, 4); }

// The quants of one lane and group into the planes. `high`: their bits above the low ones, when
// those do not fit `low`.
void StoreQuants(const uint8_t* low, const uint8_t* high, const PanelLayout& layout, uint32_t lane,
                 std::byte* group) {
  for (uint32_t quad = 0; quad < 8; quad += 2) {
    const uint32_t first = QuadWord(low + 4 * quad);
    const uint32_t second = QuadWord(low + 4 * quad + 4);
    if (layout.low_bits == 8) {
      StoreWord(first, group + 64 * quad + 4 * lane);
      StoreWord(second, group + 64 * quad + 64 + 4 * lane);
    } else {
      StoreWord((first & 0x0f0f0f0fu) | (second & 0x0f0f0f0fu) << 4, group + 32 * quad + 4 * lane);
    }
  }
  if (layout.high_bits == 0) return;
  const uint32_t quads = 8 / layout.high_bits;  // that share 64 bytes
  for (uint32_t first = 0; first < 8; first += quads) {
    uint32_t word = 0;
    for (uint32_t k = 0; k < quads; ++k) {
      word |= QuadWord(high + 4 * (first + k)) << (k * layout.high_bits);
    }
    StoreWord(word, group + layout.high_offset() + 64 * (first / quads) + 4 * lane);
  }
}

void PackGroupLane(const QuantGroup& group, const PanelLayout& layout, uint32_t lane,
                   std::byte* out) {
  uint8_t high[kGroupInputs];
  for (uint32_t i = 0; i < kGroupInputs; ++i) high[i] = group.quants[i] >> 4;
  StoreQuants(group.quants, high, layout, lane, out);
  for (uint32_t half = 0; half < layout.scales; ++half) {
    std::byte* vector = out + layout.scale_offset(half);
    if (layout.factors) {
      vector[lane] = static_cast<std::byte>(group.scale_factors[half]);
    } else {
      StoreHalf(group.scales[half], vector, lane);
    }
  }
  if (!layout.offsets) return;
  if (layout.factors) {
    out[layout.offset_offset() + lane] = static_cast<std::byte>(group.offset_factor);
  } else {
    StoreHalf(group.offset, out + layout.offset_offset(), lane);
  }
}

void PackLane(DType dtype, const std::byte* row, uint32_t inputs, uint32_t lane, std::byte* panel) {
  const PanelLayout layout = LayoutOf(dtype);
  const uint32_t groups = inputs / kGroupInputs;
  for (uint32_t g = 0; g < groups; ++g) {
    const QuantGroup group = ReadGroup(dtype, row, g);
    std::byte* block = panel + uint64_t{g / layout.groups()} * layout.block_bytes();
    if (layout.factors && g % layout.groups() == 0) {
      StoreHalf(group.d, block, lane);
      if (layout.offsets) StoreHalf(-group.d_min, block + 2 * kPanelOutputs, lane);
    }
    PackGroupLane(group, layout, lane,
                  block + layout.header_bytes() + g % layout.groups() * layout.group_bytes());
  }
}

// The largest |q - z| of a BF16 group: 8 significant bits, the highest worth 2^10. A group's dot
// with 16-bit activations must fit 32 bits, as kernels sum it there.
constexpr int64_t kBFloatQuantMax = 255 << 3;
static_assert(kGroupInputs * kBFloatQuantMax * 32767 <= INT32_MAX);

// BF16 as fixed point: q = w / 2^e rounded, e such that the group's largest value, with its 8
// significant bits, has 11. So values down to 1/8 of the largest keep every bit.
void PackBFloatLane(const std::byte* row, uint32_t inputs, uint32_t lane, std::byte* panel) {
  constexpr PanelLayout kLayout = LayoutOf(DType::kBF16);
  for (uint32_t g = 0; g < inputs / kGroupInputs; ++g) {
    float values[kGroupInputs];
    uint32_t largest = 0;  // bits of |w|, without the sign
    for (uint32_t i = 0; i < kGroupInputs; ++i) {
      const uint16_t bits = LoadU16(row + 2 * (size_t{g} * kGroupInputs + i));
      values[i] = BFloat16ToFloat(bits);
      largest = std::max<uint32_t>(largest, bits & 0x7fff);
    }
    std::byte* group = panel + uint64_t{g} * kLayout.block_bytes();
    // A group that is not finite becomes NaN or infinite throughout: 255 is infinity.
    const uint32_t biased = largest >> 7;
    const uint32_t exponent = biased == 255 ? 255 : std::max(biased, 11u) - 10;
    group[kLayout.scale_offset(0) + lane] = static_cast<std::byte>(exponent);
    const float inverse = std::bit_cast<float>((254 - std::min(exponent, 253u)) << 23);
    uint8_t low[kGroupInputs];
    uint8_t high[kGroupInputs];
    for (uint32_t i = 0; i < kGroupInputs; ++i) {
      const float scaled = biased == 255 ? 0 : values[i] * inverse;  // exact: a power of two
      const auto quant = static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(scaled)) +
                                               static_cast<int32_t>(kLayout.zero_point));
      low[i] = static_cast<uint8_t>(quant & 255);
      high[i] = static_cast<uint8_t>(quant >> 8);
    }
    StoreQuants(low, high, kLayout, lane, group);
  }
}

// A BF16 row that cannot be cut into groups.
void WidenBFloatLane(const std::byte* row, uint32_t inputs, uint32_t lane, std::byte* panel) {
  for (uint32_t i = 0; i < inputs; ++i) {
    const float value = BFloat16ToFloat(LoadU16(row + 2 * size_t{i}));
    std::memcpy(panel + 4 * (size_t{i} * kPanelOutputs + lane), &value, 4);
  }
}

uint64_t PanelBytes(DType dtype, uint64_t inputs) {
  const PanelLayout layout = LayoutOf(dtype);
  if (layout.quantized()) return inputs / kGroupInputs / layout.groups() * layout.block_bytes();
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
  const bool widened = dtype == DType::kBF16 && inputs % kGroupInputs != 0;
  matrix.dtype_ = widened ? DType::kF32 : dtype;
  matrix.outputs_ = static_cast<uint32_t>(outputs);
  matrix.inputs_ = static_cast<uint32_t>(inputs);
  matrix.panel_bytes_ = PanelBytes(matrix.dtype_, inputs);
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

  pool.ParallelFor(matrix.panels(), [&](uint32_t index) {
    std::byte* panel = panels + index * matrix.panel_bytes_;
    const uint32_t first = index * kPanelOutputs;
    const uint32_t lanes = std::min(kPanelOutputs, matrix.outputs_ - first);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const std::byte* row = rows.data() + (first + lane) * row_bytes;
      if (IsQuantized(dtype)) {
        PackLane(dtype, row, matrix.inputs_, lane, panel);
      } else if (widened) {
        WidenBFloatLane(row, matrix.inputs_, lane, panel);
      } else if (dtype == DType::kBF16) {
        PackBFloatLane(row, matrix.inputs_, lane, panel);
      } else {
        PackFloatLane(row, matrix.inputs_, Traits(dtype).block_bytes, lane, panel);
      }
    }
  });
  return matrix;
}

}  // namespace plumb::tensor
