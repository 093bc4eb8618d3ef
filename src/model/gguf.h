// model/gguf.h
// Reads the GGUF container: metadata by key and a directory of tensors, both as views into the
// file's bytes. A model file is untrusted: every count, length, product and offset is checked once,
// in Parse, so that nothing read through a Gguf afterwards can leave the file. Source: docs/gguf.md
// of ggml, versions 2 and 3, little-endian. Read next: model/config.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/result.h"
#include "model/checkpoint.h"

namespace plumb::model {

// What a file may ask of us; a file beyond is refused with kUnsupported.
constexpr uint64_t kGgufKeysMax = 4096;
constexpr uint64_t kGgufTensorsMax = 1u << 16;
constexpr uint64_t kGgufNameBytesMax = 256;        // of a key or a tensor name; printable ASCII
constexpr uint64_t kGgufTextBytesMax = 16u << 20;  // of a text value; a whole tokenizer.json
                                                   // may have kHfTokenizerBytesMax
constexpr uint64_t kGgufArrayCountMax = 1u << 22;  // elements of an array; arrays of arrays refused
constexpr uint64_t kGgufAlignmentMax = 1u << 20;

// Immutable after construction. Thread: any. Every view handed out lives as long as the object
// (and, after Parse, as the caller's bytes).
class Gguf final : public Checkpoint {
 public:
  // kNotFound; kInternal: cannot be mapped; and the errors of Parse. Messages hold no path.
  static base::Result<std::unique_ptr<Gguf>> Open(const std::string& path);
  // kCorrupt: not GGUF, truncated (the message says how many bytes are missing), or inconsistent;
  // kUnsupported: version, byte order, tensor type or size beyond the limits above.
  static base::Result<std::unique_ptr<Gguf>> Parse(std::span<const std::byte> bytes);

  const std::map<std::string_view, GgufValue>& values() const override { return values_; }
  std::span<const GgufTensor> tensors() const override { return tensors_; }
  const GgufTensor* FindTensor(std::string_view name) const override;
  base::Result<std::span<const std::byte>> Rows(const GgufTensor& tensor, RowRange range,
                                                tensor::AlignedBuffer& scratch) const override;
  std::string Format() const override;
  uint64_t file_bytes() const override { return bytes_.size(); }

  uint32_t version() const { return version_; }

 private:
  friend class GgufParser;
  Gguf() = default;

  std::unique_ptr<base::MappedFile> file_;  // null after Parse
  std::span<const std::byte> bytes_;
  uint32_t version_ = 0;
  std::map<std::string_view, GgufValue> values_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, uint32_t> tensor_index_;
};

}  // namespace plumb::model
