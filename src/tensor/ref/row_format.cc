// tensor/ref/row_format.cc
// The judge of cache rows: a group at a time (docs/numerics_deepseek_v41.md, "Cache rows").
#include <bit>
#include <cmath>
#include <cstring>

#include "tensor/float16.h"
#include "tensor/ref/reference.h"
#include "tensor/small_float.h"

namespace plumb::tensor::ref {
namespace {

// What a group's elements are multiplied by before they become codes, and its scale's byte.
struct GroupScale {
  uint8_t code;
  float inverse;
  bool finite;  // else `code` is NaN and the elements' codes are 0
};

bool FourBits(RowFormat format) { return format != RowFormat::kF8Group32; }
uint32_t GroupSize(RowFormat format) { return format == RowFormat::kF4Group16 ? 16 : 32; }

float ScaleValue(RowFormat format, uint8_t code) {
  return format == RowFormat::kF4Group16 ? E4m3Value(code) : E8m0Value(code);
}

GroupScale FindScale(RowFormat format, const float* x) {
  float largest = 0;
  for (uint32_t i = 0; i < GroupSize(format); ++i) {
    if (!std::isfinite(x[i])) {
      return {format == RowFormat::kF4Group16 ? kE4m3Nan : kE8m0Nan, 0, false};
    }
    largest = std::fmax(largest, std::fabs(x[i]));
  }
  uint8_t code = 0;
  if (format == RowFormat::kF8Group32) {
    code = E8m0Above(std::fmax(largest, kF8GroupLeast) / kE4m3Max);
  } else if (format == RowFormat::kF4Group32) {
    code = E8m0Above(std::fmax(largest, kF4Group32Least) / kE2m1Max);
  } else {
    code = E4m3Code(std::fmin(std::fmax(largest, kF4Group16Least) * kSixth, kE4m3Max));
  }
  return {code, 1.0f / ScaleValue(format, code), true};
}

}  // namespace

void EncodeRow(RowFormat format, const float* values, uint64_t n, std::byte* row) {
  if (format == RowFormat::kF32) {
    std::memcpy(row, values, 4 * n);
    return;
  }
  const uint32_t group = GroupSize(format);
  std::byte* scales = row + (FourBits(format) ? n / 2 : n);
  for (uint64_t first = 0; first < n; first += group) {
    const GroupScale scale = FindScale(format, values + first);
    scales[first / group] = std::byte{scale.code};
    for (uint64_t i = first; i < first + group; ++i) {
      const float x = scale.finite ? values[i] * scale.inverse : 0.0f;
      if (!FourBits(format)) {
        row[i] = std::byte{E4m3Code(x)};
      } else if (i % 2 == 0) {
        row[i / 2] = std::byte{E2m1Code(x)};
      } else {
        row[i / 2] |= std::byte{E2m1Code(x)} << 4;
      }
    }
  }
}

void DecodeRow(RowFormat format, const std::byte* row, uint64_t n, float* values) {
  if (format == RowFormat::kF32) {
    std::memcpy(values, row, 4 * n);
    return;
  }
  const std::byte* scales = row + (FourBits(format) ? n / 2 : n);
  for (uint64_t i = 0; i < n; ++i) {
    const auto scale = std::to_integer<uint8_t>(scales[i / GroupSize(format)]);
    float element = 0;
    if (FourBits(format)) {
      const auto both = std::to_integer<uint8_t>(row[i / 2]);
      element = E2m1Value(i % 2 == 0 ? both & 15 : both >> 4);
    } else {
      element = E4m3Value(std::to_integer<uint8_t>(row[i]));
    }
    values[i] = element * ScaleValue(format, scale);
  }
}

void RoundRow(RowFormat format, uint64_t n, float* values) {
  if (format == RowFormat::kF32) return;
  std::byte row[RowBytes(RowFormat::kF8Group32, kRowChunk)];
  for (uint64_t first = 0; first < n; first += kRowChunk) {
    EncodeRow(format, values + first, kRowChunk, row);
    DecodeRow(format, row, kRowChunk, values + first);
  }
}

void RoundToBf16(uint64_t n, float* values) {
  for (uint64_t i = 0; i < n; ++i) {
    uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    bits = std::isnan(values[i]) ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
    values[i] = std::bit_cast<float>(bits & 0xffff0000u);
  }
}

}  // namespace plumb::tensor::ref
