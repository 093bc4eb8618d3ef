// tensor/quantize_block_k.h
// One 256-weight block of the K formats, whose eight or sixteen small scales are themselves
// integers times one f16. Private to tensor/quantize_block.cc; layouts as in quant_group.cc.
#pragma once

#include <cstddef>

namespace plumb::tensor {

constexpr size_t kKWeights = 256;

// `block` holds the format's bytes. Values are finite and within MagnitudeMax.
void QuantizeQ4K(const float* x, std::byte* block);
void QuantizeQ5K(const float* x, std::byte* block);
void QuantizeQ6K(const float* x, std::byte* block);

}  // namespace plumb::tensor
