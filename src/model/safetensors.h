// model/safetensors.h
// Reads one safetensors file: a directory of tensors as views into its bytes. The file is
// untrusted: sizes, offsets, names and the JSON of its header are checked once, in Parse, and
// nothing read afterwards can leave the file. Source: the format's description in the README of
// huggingface/safetensors. Read next: model/hf_checkpoint.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/result.h"

namespace plumb::model {

// What a file may ask of us; a file beyond is refused with kUnsupported.
constexpr uint64_t kSafetensorsHeaderBytesMax = 100'000'000;  // as the reference implementation
constexpr uint64_t kSafetensorsTensorsMax = 1u << 18;         // of a file
constexpr uint64_t kSafetensorsNumberBytesMax = 20;           // of digits: any uint64
constexpr uint64_t kSafetensorsTextBytesMax = 8u << 20;       // of metadata
constexpr uint64_t kSafetensorsNameBytesMax = 256;            // printable ASCII
constexpr uint32_t kSafetensorsDimsMax = 4;

enum class StoredType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kOther,  // a type of the format that no weight of ours has; its size is known all the same
};

struct SafetensorsTensor {
  std::string name;
  StoredType type = StoredType::kOther;
  std::string_view type_name;  // as in the file: "BF16"; static
  uint32_t element_bytes = 0;
  uint32_t dims_count = 0;                           // 0 = a single number
  std::array<uint64_t, kSafetensorsDimsMax> dims{};  // the last is contiguous; unused ones 1
  uint64_t elements = 0;                             // product of dims, >= 1
  std::span<const std::byte> bytes;                  // not aligned to anything

  // A vector is one row.
  uint64_t row_elements() const { return dims_count == 0 ? 1 : dims[dims_count - 1]; }
  uint64_t rows() const { return elements / row_elements(); }
};

// Immutable after construction. Thread: any. Views live as long as the object (and, after Parse, as
// the caller's bytes).
class Safetensors {
 public:
  // `name` is what name() says. kNotFound; kInternal: cannot be mapped; and the errors of Parse.
  // Messages hold no path.
  static base::Result<std::unique_ptr<Safetensors>> Open(const std::string& path,
                                                         std::string_view name = "");
  // kCorrupt: not safetensors, truncated, or inconsistent (sizes that do not fit the shape, tensors
  // that overlap, leave a gap or leave the file, a name that occurs twice); kUnsupported: a type
  // unknown to the format or a size beyond the limits above. Messages name the tensor.
  static base::Result<std::unique_ptr<Safetensors>> Parse(std::span<const std::byte> bytes);

  std::span<const SafetensorsTensor> tensors() const { return tensors_; }  // by their place
  uint64_t file_bytes() const { return bytes_.size(); }
  // What its folder calls the file; empty after Parse.
  const std::string& name() const { return name_; }

 private:
  Safetensors() = default;
  std::unique_ptr<base::MappedFile> file_;  // null after Parse
  std::string name_;
  std::span<const std::byte> bytes_;
  std::vector<SafetensorsTensor> tensors_;
};

}  // namespace plumb::model
