// tensor/ref/reference.h
// The scalar judge of every kernel: written from docs/numerics.md, independent of cpu/, slow. Tests
// demand equal bits from every target; where nothing else runs it serves as the kernel table
// "scalar".
#pragma once

#include "tensor/kernel_table.h"

namespace plumb::tensor::ref {

void Multiply(const ProductTask& task);
void MultiplyBlocks(const BlockTask& task);
void Quantize(const QuantizeTask& task);
void Attention(const AttentionTask& task);
void FoldPages(const FoldTask& task);
void StoreKeyValue(const StoreTask& task);
void RmsNormRow(const float* x, const float* weight, float epsilon, uint32_t n, float* out);
void SwiGluRow(const float* gate, const float* up, uint32_t n, float* out);
void GeGluRow(const float* gate, const float* up, uint32_t n, float* out);
void AddRow(const float* a, const float* b, uint32_t n, float* out);
void AddScaledRow(const float* x, float scale, uint32_t n, float* out);
void SoftCapRow(const float* x, float cap, uint64_t n, float* out);
void RotateHeads(float* x, uint32_t heads, uint32_t head_dim, uint32_t dims, RotaryPairing pairing,
                 const float* cosines, const float* sines);
float LogSumExpRow(const float* x, uint64_t n);
void SoftmaxRow(const float* x, uint64_t n, float* out);

// The sum of 16 virtual lanes: i + 8, then + 4, + 2, + 1.
float FoldLanes(const float (&lanes)[16]);

}  // namespace plumb::tensor::ref
