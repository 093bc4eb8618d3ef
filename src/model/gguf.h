// model/gguf.h
// Reads the GGUF container: metadata by key and a directory of tensors, both as views into the
// file's bytes. A model file is untrusted: every count, length, product and offset is checked once,
// in Parse, so that nothing read through a Gguf afterwards can leave the file. Source: docs/gguf.md
// of ggml, versions 2 and 3, little-endian. Read next: model/config.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/result.h"

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

// What a file may ask of us; a file beyond is refused with kUnsupported.
constexpr uint64_t kGgufKeysMax = 4096;
constexpr uint64_t kGgufTensorsMax = 1u << 16;
constexpr uint64_t kGgufNameBytesMax = 256;        // of a key or a tensor name; printable ASCII
constexpr uint64_t kGgufTextBytesMax = 16u << 20;  // of a text value
constexpr uint64_t kGgufArrayCountMax = 1u << 22;  // elements of an array; arrays of arrays refused
constexpr uint32_t kGgufDimsMax = 4;
constexpr uint64_t kGgufAlignmentMax = 1u << 20;

// A metadata value as it lies in the file. `bytes` are the value's own (for a text without its
// length prefix, for an array the packed elements).
struct GgufValue {
  GgufType type;
  GgufType element_type;  // of an array; otherwise == type
  uint64_t count;         // elements of an array; otherwise 1
  std::span<const std::byte> bytes;
};

struct GgufTensor {
  std::string_view name;
  uint32_t type;                            // ggml's type number; name: GgufTensorTypeName
  uint32_t dims_count;                      // 1..kGgufDimsMax
  std::array<uint64_t, kGgufDimsMax> dims;  // dims[0] is contiguous (a row's length); unused ones 1
  uint64_t elements;                        // product of dims
  std::span<const std::byte> bytes;         // its data, whole rows of blocks
};
// "F32", "Q4_K", ...; "type 77" for numbers not known here.
std::string GgufTensorTypeName(uint32_t type);

// Immutable after construction. Thread: any. Every view handed out lives as long as the object
// (and, after Parse, as the caller's bytes).
class Gguf {
 public:
  // kNotFound; kInternal: cannot be mapped; and the errors of Parse. Messages hold no path.
  static base::Result<std::unique_ptr<Gguf>> Open(const std::string& path);
  // kCorrupt: not GGUF, truncated (the message says how many bytes are missing), or inconsistent;
  // kUnsupported: version, byte order, tensor type or size beyond the limits above.
  static base::Result<std::unique_ptr<Gguf>> Parse(std::span<const std::byte> bytes);

  // Typed reads. kNotFound: no such key; kCorrupt: of another type or out of range. Messages name
  // the key. Unsigned takes any integer type that holds a value >= 0; Number any numeric type.
  bool Has(std::string_view key) const { return values_.contains(key); }
  base::Result<uint64_t> Unsigned(std::string_view key) const;
  base::Result<double> Number(std::string_view key) const;
  base::Result<bool> Bool(std::string_view key) const;
  base::Result<std::string_view> Text(std::string_view key) const;
  base::Result<std::vector<std::string_view>> Texts(std::string_view key) const;
  base::Result<std::vector<double>> Numbers(std::string_view key) const;
  base::Result<std::vector<int64_t>> Integers(std::string_view key) const;  // bools as 0 and 1

  // In key order.
  const std::map<std::string_view, GgufValue>& values() const { return values_; }
  // In file order.
  std::span<const GgufTensor> tensors() const { return tensors_; }
  // Null when there is none.
  const GgufTensor* FindTensor(std::string_view name) const;

  uint32_t version() const { return version_; }
  uint64_t file_bytes() const { return bytes_.size(); }

 private:
  friend class GgufParser;
  Gguf() = default;
  base::Result<const GgufValue*> Find(std::string_view key, std::string_view wanted) const;

  std::unique_ptr<base::MappedFile> file_;  // null after Parse
  std::span<const std::byte> bytes_;
  uint32_t version_ = 0;
  std::map<std::string_view, GgufValue> values_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, uint32_t> tensor_index_;
};

}  // namespace plumb::model
