// tensor/ref/reference.h
// The scalar judge of every kernel: written from docs/numerics.md (and its twins for single
// families), independent of cpu/, slow. Tests demand equal bits from every target; where nothing
// else runs it serves as the kernel table "scalar".
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

void EncodeRow(RowFormat format, const float* values, uint64_t n, std::byte* row);
void DecodeRow(RowFormat format, const std::byte* row, uint64_t n, float* values);
void RoundRow(RowFormat format, uint64_t n, float* values);
void RoundToBf16(uint64_t n, float* values);
void AttendGathered(const GatheredTask& task);
void IndexScores(const IndexTask& task);

// attention_task.h
float Exp2(float y);
// The sum of 16 virtual lanes: i + 8, then + 4, + 2, + 1.
float FoldLanes(const float (&lanes)[16]);

}  // namespace plumb::tensor::ref
