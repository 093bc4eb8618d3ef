// model/checkpoint.h
// A model as it is stored: typed metadata and a directory of named tensors. The names, value types
// and tensor types are GGUF's, whatever the container is, so that config, families and inspection
// do not know where the numbers come from. Three kinds: model/gguf.h, model/hf_checkpoint.h, and
// model/deepseek_checkpoint.h, whose tensors keep the names and types of its folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/aligned_buffer.h"

namespace plumb::model {

// Type of a metadata value; the numbers are the file's.
enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kText,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};
std::string_view GgufTypeName(GgufType type);

constexpr uint32_t kGgufDimsMax = 4;

// A metadata value. `bytes` are the value's own (for a text without its
// length prefix, for an array the packed elements).
struct GgufValue {
  GgufType type;
  GgufType element_type;  // of an array; otherwise == type
  uint64_t count;         // elements of an array; otherwise 1
  std::span<const std::byte> bytes;
};

// For stored types that ggml has no number for: stored_type tells them.
constexpr uint32_t kNoGgufType = UINT32_MAX;

// A tensor of the directory. Its rows are the runs of dims[0] elements; a stack of matrices, such
// as a layer's experts, is [inputs, outputs, experts].
struct GgufTensor {
  std::string_view name;
  uint32_t type;                            // ggml's type number, or kNoGgufType
  uint32_t dims_count;                      // 1..kGgufDimsMax
  std::array<uint64_t, kGgufDimsMax> dims;  // dims[0] is contiguous (a row's length); unused ones 1
  uint64_t elements;                        // product of dims
  // Its data, whole rows of blocks. Empty where they do not lie in one piece, in this type: then
  // only Rows gives them.
  std::span<const std::byte> bytes;
  uint64_t stored_bytes;         // in the files
  std::string_view stored_type;  // in the files: "F8_E4M3" for a tensor that Rows gives as F32
};
// "F32", "Q4_K", ...; "type 77" for numbers not known here.
std::string GgufTensorTypeName(uint32_t type);

// Rows of a tensor: [first, first + count).
struct RowRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

// Immutable after construction. Thread: any. Every view handed out lives as long as the object.
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  // In key order.
  virtual const std::map<std::string_view, GgufValue>& values() const = 0;
  // In the container's order. No name occurs twice.
  virtual std::span<const GgufTensor> tensors() const = 0;
  // Null when there is none.
  virtual const GgufTensor* FindTensor(std::string_view name) const = 0;
  // The bytes of rows of one of tensors(), in its type: a view of the file where they lie there as
  // they are, else they are put together in `scratch`, which is replaced and must outlive them. The
  // range lies within the tensor (CHECK). kOverloaded: out of memory.
  virtual base::Result<std::span<const std::byte>> Rows(const GgufTensor& tensor, RowRange range,
                                                        tensor::AlignedBuffer& scratch) const = 0;
  // Shares the mapped files that bytes of tensors() lie in, for a model that computes from them and
  // may outlive this object. Null: no model does so with this kind.
  virtual std::shared_ptr<const void> Keep() const { return nullptr; }
  // For people: which of several files holds one of tensors(); empty where there is but one.
  virtual std::string FileOf(const GgufTensor& /*tensor*/) const { return ""; }
  // For people: "GGUF 3", "safetensors, 4 files".
  virtual std::string Format() const = 0;
  virtual uint64_t file_bytes() const = 0;  // of all files with tensors

  // Typed reads. kNotFound: no such key; kCorrupt: of another type or out of range. Messages name
  // the key. Unsigned takes any integer type that holds a value >= 0; Number any numeric type.
  bool Has(std::string_view key) const { return values().contains(key); }
  base::Result<uint64_t> Unsigned(std::string_view key) const;
  base::Result<double> Number(std::string_view key) const;
  base::Result<bool> Bool(std::string_view key) const;
  base::Result<std::string_view> Text(std::string_view key) const;
  base::Result<std::vector<std::string_view>> Texts(std::string_view key) const;
  base::Result<std::vector<double>> Numbers(std::string_view key) const;
  base::Result<std::vector<int64_t>> Integers(std::string_view key) const;  // bools as 0 and 1

 private:
  base::Result<const GgufValue*> Find(std::string_view key, std::string_view wanted) const;
};

}  // namespace plumb::model
