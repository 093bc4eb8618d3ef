// model/families/engram.h
// Engram: rows of large tables, looked up by hashes of the last tokens, added to the streams by a
// gate. Which rows depends on token ids alone, so that a step asks for the pages of all its rows
// before its first layer. Here are addresses and rows; the gate is in deepseek_engram.h. Sources:
// DeepInfer 0.1.0 (models/v4_modules/engram.py, fill_engram_row), TileKernels' torch/engram.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "model/families/deepseek_v41_config.h"
#include "tensor/block_matrix.h"

namespace plumb::model {

// A table in its mapped file. A value type; borrows the bytes.
struct EngramTable {
  const std::byte* codes = nullptr;   // [rows, width] E4M3
  const std::byte* scales = nullptr;  // [rows, width / 32] E8M0, none is NaN
  uint64_t rows = 0;
  uint32_t width = 0;  // a multiple of 32

  // Row `row` < rows as a matrix of one output: BlockRow(table.Row(row), 0, out) gives its values.
  tensor::BlockMatrix Row(uint64_t row) const {
    return {tensor::BlockFormat::kF8Block32, 1, width, codes + row * width,
            scales + row * (width / 32)};
  }
  uint64_t bytes() const { return rows * (width + width / 32); }
};

// Addresses of every layer's rows. A value type, immutable. Thread: any.
class EngramAddresses {
 public:
  // `classes`: of each token id below config.vocabulary, each below config.engram_classes (CHECK).
  // kCorrupt: the sums of the primes are not config.engram_rows.
  static base::Result<EngramAddresses> Create(const DeepseekConfig& config,
                                              std::vector<uint32_t> classes);
  EngramAddresses() = default;

  // Rows of one token in a table: n-grams from 2 on, heads within.
  uint32_t rows_per_token() const { return static_cast<uint32_t>(heads_ * (ngram_max_ - 1)); }
  uint32_t ngram_max() const { return ngram_max_; }

  // The rows of the token whose last tokens are `recent`: recent[0] itself, then those before it;
  // at most ngram_max, fewer at the beginning of a sequence. `rows`: [rows_per_token].
  void RowsOf(uint32_t place, std::span<const base::TokenId> recent,
              std::span<uint64_t> rows) const;

  std::span<const int64_t> multipliers(uint32_t place) const { return multipliers_[place]; }
  std::span<const uint64_t> primes(uint32_t place) const { return primes_[place]; }

 private:
  std::vector<uint32_t> classes_;
  std::vector<std::vector<int64_t>> multipliers_;  // by place, [ngram_max]
  std::vector<std::vector<uint64_t>> primes_;      // by place, [rows_per_token]
  uint32_t ngram_max_ = 0;
  uint32_t heads_ = 0;
  uint32_t pad_class_ = 0;
};

// Smaller ones stay in memory: nothing is asked for.
constexpr uint64_t kPrefetchTableBytesMin = 64u << 20;
inline bool IsPrefetched(const EngramTable& table) {
  return table.bytes() >= kPrefetchTableBytesMin;
}

// Asks the kernel to bring rows into memory, without waiting for them. `rows`: each below
// table.rows, in any order, also repeatedly. Does nothing unless IsPrefetched. No allocation.
// Thread: any.
void PrefetchRows(const EngramTable& table, std::span<const uint64_t> rows);

}  // namespace plumb::model
