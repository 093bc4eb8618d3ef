// model/gguf_writer.cc
// The layout of a GGUF file, written: header, keys, directory, padding. The reader of the same is
// gguf_parse.cc.
#include "model/gguf_writer.h"

#include "base/check.h"

namespace plumb::model {

GgufWriter& GgufWriter::Text(std::string_view key, std::string_view value) {
  Key(key, GgufType::kText);
  PutText(keys_, value);
  return *this;
}

GgufWriter& GgufWriter::Texts(std::string_view key, std::span<const std::string> values) {
  Array(key, GgufType::kText, values.size());
  for (const std::string& value : values) PutText(keys_, value);
  return *this;
}

GgufWriter& GgufWriter::Copy(std::string_view key, const GgufValue& value) {
  const std::string_view bytes(reinterpret_cast<const char*>(value.bytes.data()),
                               value.bytes.size());
  if (value.type == GgufType::kText) return Text(key, bytes);
  if (value.type == GgufType::kArray) {
    Array(key, value.element_type, value.count);
  } else {
    Key(key, value.type);
  }
  keys_ += bytes;
  return *this;
}

GgufWriter& GgufWriter::Tensor(std::string_view name, uint32_t type, std::span<const uint64_t> dims,
                               std::string_view bytes) {
  data_.resize(Aligned(data_.size()));
  return TensorAt(name, type, dims, data_.size(), bytes);
}

GgufWriter& GgufWriter::TensorAt(std::string_view name, uint32_t type,
                                 std::span<const uint64_t> dims, uint64_t offset,
                                 std::string_view bytes) {
  CHECK(announced_ == 0) << name;
  Enter(name, type, dims, offset);
  data_ += bytes;
  return *this;
}

GgufWriter& GgufWriter::Announce(std::string_view name, uint32_t type,
                                 std::span<const uint64_t> dims, uint64_t size) {
  CHECK(data_.empty()) << name;
  Enter(name, type, dims, Aligned(announced_));
  announced_ = Aligned(announced_) + size;
  return *this;
}

std::string GgufWriter::Head() const {
  std::string head = "GGUF";
  Put(head, version_);
  Put(head, tensor_count_);
  Put(head, key_count_);
  head += keys_ + directory_;
  head.resize(Aligned(head.size()));
  return head;
}

void GgufWriter::PutText(std::string& to, std::string_view text) {
  Put(to, static_cast<uint64_t>(text.size()));
  to += text;
}

void GgufWriter::Key(std::string_view key, GgufType type) {
  PutText(keys_, key);
  Put(keys_, static_cast<uint32_t>(type));
  ++key_count_;
}

void GgufWriter::Array(std::string_view key, GgufType element, uint64_t count) {
  Key(key, GgufType::kArray);
  Put(keys_, static_cast<uint32_t>(element));
  Put(keys_, count);
}

void GgufWriter::Enter(std::string_view name, uint32_t type, std::span<const uint64_t> dims,
                       uint64_t offset) {
  PutText(directory_, name);
  Put(directory_, static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) Put(directory_, dim);
  Put(directory_, type);
  Put(directory_, offset);
  ++tensor_count_;
}

}  // namespace plumb::model
