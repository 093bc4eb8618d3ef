// tensor/kv_page.h
// What lies in a KV page: kPageTokens tokens' keys and values of all layers, f16. Keys are
// transposed so that a vector lane is a key when scores are computed and a dimension when values
// are summed. To everyone but the model and attention a page is opaque bytes (docs/numerics.md,
// "Pages").
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::tensor {

constexpr uint32_t kPageTokens = 128;
constexpr uint32_t kHeadDimMax = 512;

// [layers][kv_heads]{ keys [head_dim][kPageTokens] f16, values [kPageTokens][head_dim] f16 }
// Pages should be aligned to 64 bytes (speed only).
struct KvLayout {
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;  // a multiple of 16, at most kHeadDimMax

  constexpr uint64_t plane_bytes() const { return uint64_t{2} * kPageTokens * head_dim; }
  constexpr uint64_t page_bytes() const { return 2 * plane_bytes() * kv_heads * layers; }
  constexpr uint64_t keys_offset(uint32_t layer, uint32_t kv_head) const {
    return 2 * plane_bytes() * (uint64_t{layer} * kv_heads + kv_head);
  }
  constexpr uint64_t values_offset(uint32_t layer, uint32_t kv_head) const {
    return keys_offset(layer, kv_head) + plane_bytes();
  }
};

}  // namespace plumb::tensor
