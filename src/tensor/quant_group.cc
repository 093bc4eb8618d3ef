// tensor/quant_group.cc: the block layouts of GGUF (ggml-common.h of llama.cpp is their definition;
// checked against the Python package `gguf`, tests/golden/quants).
#include "tensor/quant_group.h"

#include "base/check.h"
#include "tensor/float16.h"

namespace plumb::tensor {
namespace {

uint32_t Byte(const std::byte* p, uint32_t index) { return static_cast<uint32_t>(p[index]); }

// Q4_*, Q5_*: input i in the low nibble of byte i, input i + 16 in the high one.
void ReadNibbles(const std::byte* nibbles, uint8_t* quants) {
  for (uint32_t i = 0; i < 16; ++i) {
    quants[i] = static_cast<uint8_t>(Byte(nibbles, i) & 15);
    quants[i + 16] = static_cast<uint8_t>(Byte(nibbles, i) >> 4);
  }
}

// Q5_0, Q5_1: bit i of four little-endian bytes is the fifth bit of input i.
void AddFifthBits(const std::byte* bits, uint8_t* quants) {
  for (uint32_t i = 0; i < 32; ++i) {
    quants[i] = static_cast<uint8_t>(quants[i] | (Byte(bits, i / 8) >> (i % 8) & 1) << 4);
  }
}

void SetScale(QuantGroup& group, float scale, float offset) {
  group.scales[0] = group.scales[1] = scale;
  group.offset = offset;
}

// Q4_K, Q5_K: eight 6-bit scales and eight 6-bit minima in 12 bytes. The products are exact in f32.
void ReadKScale(const std::byte* block, uint32_t sub, QuantGroup& group) {
  const float d = LoadHalf(block);
  const float d_min = LoadHalf(block + 2);
  const std::byte* packed = block + 4;
  uint32_t scale = 0;
  uint32_t minimum = 0;
  if (sub < 4) {
    scale = Byte(packed, sub) & 63;
    minimum = Byte(packed, sub + 4) & 63;
  } else {
    scale = (Byte(packed, sub + 4) & 15) | Byte(packed, sub - 4) >> 6 << 4;
    minimum = Byte(packed, sub + 4) >> 4 | Byte(packed, sub) >> 6 << 4;
  }
  SetScale(group, d * static_cast<float>(scale), -(d_min * static_cast<float>(minimum)));
  group.d = d;
  group.d_min = d_min;
  group.scale_factors[0] = group.scale_factors[1] = static_cast<int8_t>(scale);
  group.offset_factor = static_cast<uint8_t>(minimum);
}

// Q4_K, Q5_K: 32 bytes hold two groups, the even one in the low nibbles.
void ReadKNibbles(const std::byte* nibbles, uint32_t sub, uint8_t* quants) {
  const std::byte* source = nibbles + 32 * (sub / 2);
  for (uint32_t i = 0; i < 32; ++i) {
    quants[i] = static_cast<uint8_t>(Byte(source, i) >> (sub % 2 * 4) & 15);
  }
}

// Q6_K: two halves of 128 inputs; in each, group k takes low bits from nibble k / 2 of the bytes
// 32 (k % 2) on, and two high bits from bits 2k of the half's 32 high bytes.
void ReadQ6K(const std::byte* block, uint32_t sub, QuantGroup& group) {
  const uint32_t half = sub / 4;
  const uint32_t k = sub % 4;
  const std::byte* low = block + 64 * half + 32 * (k % 2);
  const std::byte* high = block + 128 + 32 * half;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t low_bits = Byte(low, i) >> (k / 2 * 4) & 15;
    const uint32_t high_bits = Byte(high, i) >> (2 * k) & 3;
    group.quants[i] = static_cast<uint8_t>(low_bits | high_bits << 4);
  }
  const float d = LoadHalf(block + 208);
  for (uint32_t i = 0; i < 2; ++i) {
    const auto scale = static_cast<int8_t>(Byte(block, 192 + 8 * half + 2 * k + i));
    group.scales[i] = d * static_cast<float>(scale);
    group.scale_factors[i] = scale;
  }
  group.d = d;
  group.offset = 0;
}

}  // namespace

QuantGroup ReadGroup(DType dtype, const std::byte* row, uint32_t index) {
  const DTypeTraits& traits = Traits(dtype);
  const uint32_t groups_per_block = traits.block_inputs / 32;
  const std::byte* block = row + size_t{index / groups_per_block} * traits.block_bytes;
  const uint32_t sub = index % groups_per_block;
  QuantGroup group;
  switch (dtype) {
    case DType::kQ4_0:
      SetScale(group, LoadHalf(block), 0);
      ReadNibbles(block + 2, group.quants);
      break;
    case DType::kQ4_1:
      SetScale(group, LoadHalf(block), LoadHalf(block + 2));
      ReadNibbles(block + 4, group.quants);
      break;
    case DType::kQ5_0:
      SetScale(group, LoadHalf(block), 0);
      ReadNibbles(block + 6, group.quants);
      AddFifthBits(block + 2, group.quants);
      break;
    case DType::kQ5_1:
      SetScale(group, LoadHalf(block), LoadHalf(block + 2));
      ReadNibbles(block + 8, group.quants);
      AddFifthBits(block + 4, group.quants);
      break;
    case DType::kQ8_0:
      SetScale(group, LoadHalf(block), 0);
      for (uint32_t i = 0; i < 32; ++i) {
        group.quants[i] = static_cast<uint8_t>(Byte(block, 2 + i) ^ 0x80);
      }
      break;
    case DType::kQ4_K:
      ReadKScale(block, sub, group);
      ReadKNibbles(block + 16, sub, group.quants);
      break;
    case DType::kQ5_K:
      ReadKScale(block, sub, group);
      ReadKNibbles(block + 48, sub, group.quants);
      for (uint32_t i = 0; i < 32; ++i) {
        const uint32_t fifth = Byte(block, 16 + i) >> sub & 1;
        group.quants[i] = static_cast<uint8_t>(group.quants[i] | fifth << 4);
      }
      break;
    case DType::kQ6_K:
      ReadQ6K(block, sub, group);
      break;
    default:
      CHECK(false) << "not a quantised type: " << traits.name;
  }
  return group;
}

}  // namespace plumb::tensor
