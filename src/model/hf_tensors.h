// model/hf_tensors.h
// The tensors of a Hugging Face folder under GGUF's names, shapes and row order. Most are views of
// the file; made when they are read: stacks of experts from a tensor each, F8 with block scales as
// F32, query and key rows in the order of adjacent rotary pairs, Gemma's norms plus one. Every
// tensor must be known: a weight left out gives wrong answers. Read next: model/hf_checkpoint.h.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/hf_config.h"
#include "model/safetensors.h"
#include "tensor/aligned_buffer.h"

namespace plumb::model {

// Rows of a stored tensor: [first_row, first_row + rows).
struct HfPiece {
  const SafetensorsTensor* stored = nullptr;
  const SafetensorsTensor* scale = nullptr;  // of an F8 matrix, [blocks of rows, blocks of columns]
  uint64_t first_row = 0;
  uint64_t rows = 0;
};

// Where a tensor's rows come from: its pieces, one after the other, each with equally many rows.
struct HfOrigin {
  std::vector<HfPiece> pieces;
  uint32_t heads =
      0;  // of so many heads, the rows change from (half, pair) to (pair, half); 0 = no
  bool add_one = false;
};

// A resource type, immutable once filled. Thread: any. Borrows the stored tensors.
class HfTensors {
 public:
  HfTensors() = default;
  HfTensors(const HfTensors&) = delete;
  HfTensors& operator=(const HfTensors&) = delete;

  // Called once. kCorrupt: a tensor that is missing to a stack or has a shape that the config or
  // its scale contradicts, or two for one place; kUnsupported: an unknown tensor or data type.
  // field() and message name the tensor as the folder does.
  base::Status Map(std::span<const SafetensorsTensor* const> stored, const HfConfig& config);

  std::span<const GgufTensor> tensors() const { return tensors_; }
  const GgufTensor* Find(std::string_view name) const;
  // As Checkpoint::Rows.
  base::Result<std::span<const std::byte>> Rows(const GgufTensor& tensor, RowRange range,
                                                tensor::AlignedBuffer& scratch) const;

 private:
  friend class HfMapper;
  std::deque<std::string> names_;
  std::vector<GgufTensor> tensors_;
  std::vector<HfOrigin> origins_;  // by tensor
  std::map<std::string_view, uint32_t> index_;
  std::vector<float> rope_factors_;
  ScaleBlock block_;
};

// The value of an F8_E4M3 byte (exponent bias 7, no infinities, 0x7f and 0xff are NaN).
float FromF8E4M3(uint8_t bits);

}  // namespace plumb::model
