// tensor/row_format.cc: argument checks, and the way to a target's kernels. Without a table that is
// the scalar one, the judge.
#include "tensor/row_format.h"

#include "base/check.h"
#include "tensor/cpu/tables.h"
#include "tensor/kernel_table.h"

namespace plumb::tensor {
namespace {

void CheckSize(RowFormat format, size_t n) {
  CHECK(format == RowFormat::kF32 || n % kRowChunk == 0) << n << " values";
}

}  // namespace

void EncodeRow(const KernelTable& kernels, RowFormat format, std::span<const float> values,
               std::byte* row) {
  CheckSize(format, values.size());
  kernels.cache_rows.encode(format, values.data(), values.size(), row);
}

void DecodeRow(const KernelTable& kernels, RowFormat format, const std::byte* row,
               std::span<float> values) {
  CheckSize(format, values.size());
  kernels.cache_rows.decode(format, row, values.size(), values.data());
}

void RoundRow(const KernelTable& kernels, RowFormat format, std::span<float> values) {
  CheckSize(format, values.size());
  kernels.cache_rows.round(format, values.size(), values.data());
}

void RoundToBf16(const KernelTable& kernels, std::span<float> values) {
  kernels.cache_rows.round_bf16(values.size(), values.data());
}

void EncodeRow(RowFormat format, std::span<const float> values, std::byte* row) {
  EncodeRow(ScalarKernels(), format, values, row);
}

void DecodeRow(RowFormat format, const std::byte* row, std::span<float> values) {
  DecodeRow(ScalarKernels(), format, row, values);
}

void RoundRow(RowFormat format, std::span<float> values) {
  RoundRow(ScalarKernels(), format, values);
}

void RoundToBf16(std::span<float> values) { RoundToBf16(ScalarKernels(), values); }

}  // namespace plumb::tensor
