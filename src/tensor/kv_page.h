// tensor/kv_page.h
// What lies in a KV page: kPageTokens tokens' keys and values of all layers. Keys are transposed so
// that a vector lane is a key when scores are computed and a dimension when values are summed. To
// everyone but the model and attention a page is opaque bytes (docs/kv_page.md; docs/numerics.md,
// "Pages").
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::tensor {

constexpr uint32_t kPageTokens = 128;
constexpr uint32_t kHeadDimMax = 512;

enum class KvFormat : uint8_t {
  kF16,
  kQ8,  // int8 with a scale for each token, KV head, and keys or values
};

// f16: [layers][kv_heads]{ keys [head_dim][kPageTokens], values [kPageTokens][head_dim] }
// q8:  [layers][kv_heads]{ keys [head_dim / 2][kPageTokens][2], values
//      [kPageTokens / 2][head_dim][2], scales of keys [kPageTokens] f32, of values the same }
// Pages should be aligned to 64 bytes (speed only).
struct KvLayout {
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;  // a multiple of 16, at most kHeadDimMax
  KvFormat format = KvFormat::kF16;

  // Keys or values of one layer and head, and their scales.
  constexpr uint64_t plane_bytes() const {
    return uint64_t{format == KvFormat::kQ8 ? 1u : 2u} * kPageTokens * head_dim;
  }
  constexpr uint64_t scale_bytes() const {
    return format == KvFormat::kQ8 ? kPageTokens * sizeof(float) : 0;
  }
  constexpr uint64_t head_bytes() const { return 2 * (plane_bytes() + scale_bytes()); }
  constexpr uint64_t page_bytes() const { return head_bytes() * kv_heads * layers; }

  // In a page; the two of scales only for kQ8.
  constexpr uint64_t keys_offset(uint32_t layer, uint32_t kv_head) const {
    return head_bytes() * (uint64_t{layer} * kv_heads + kv_head);
  }
  constexpr uint64_t values_offset(uint32_t layer, uint32_t kv_head) const {
    return keys_offset(layer, kv_head) + plane_bytes();
  }
  constexpr uint64_t key_scales_offset(uint32_t layer, uint32_t kv_head) const {
    return values_offset(layer, kv_head) + plane_bytes();
  }
  constexpr uint64_t value_scales_offset(uint32_t layer, uint32_t kv_head) const {
    return key_scales_offset(layer, kv_head) + scale_bytes();
  }
};

}  // namespace plumb::tensor
