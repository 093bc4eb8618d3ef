// model/gguf_writer.h
// Writes small GGUF files into a string: tiny models for tests here and in other modules, and seeds
// for the fuzzer. It writes what it is told, also nonsense, since the reader's tests need nonsense.
// Read next: model/tiny_model.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/gguf.h"

namespace plumb::model {

// A value type; one thread at a time.
class GgufWriter {
 public:
  explicit GgufWriter(uint32_t version = 3) : version_(version) {}

  GgufWriter& Text(std::string_view key, std::string_view value) {
    Key(key, GgufType::kText);
    PutText(keys_, value);
    return *this;
  }
  GgufWriter& Texts(std::string_view key, std::span<const std::string> values) {
    Array(key, GgufType::kText, values.size());
    for (const std::string& value : values) PutText(keys_, value);
    return *this;
  }
  // Scalars: bool, integers of 8 to 64 bits, float, double.
  template <typename T>
  GgufWriter& Value(std::string_view key, T value) {
    Key(key, TypeOf<T>());
    Put(keys_, value);
    return *this;
  }
  template <typename T>
  GgufWriter& Values(std::string_view key, const std::vector<T>& values) {
    Array(key, TypeOf<T>(), values.size());
    for (const T value : values) Put(keys_, value);
    return *this;
  }
  // `type` is ggml's number; `bytes` should be what type and dims need.
  GgufWriter& Tensor(std::string_view name, uint32_t type, std::span<const uint64_t> dims,
                     std::string_view bytes) {
    data_.resize((data_.size() + kAlignment - 1) / kAlignment * kAlignment);
    return TensorAt(name, type, dims, data_.size(), bytes);
  }
  // The same with an offset of the caller's choice in the directory.
  GgufWriter& TensorAt(std::string_view name, uint32_t type, std::span<const uint64_t> dims,
                       uint64_t offset, std::string_view bytes) {
    PutText(directory_, name);
    Put(directory_, static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) Put(directory_, dim);
    Put(directory_, type);
    Put(directory_, offset);
    data_ += bytes;
    ++tensor_count_;
    return *this;
  }

  std::string Finish() const {
    std::string file = "GGUF";
    Put(file, version_);
    Put(file, tensor_count_);
    Put(file, key_count_);
    file += keys_ + directory_;
    file.resize((file.size() + kAlignment - 1) / kAlignment * kAlignment);
    return file + data_;
  }

  static constexpr uint64_t kAlignment = 32;

 private:
  template <typename T>
  static constexpr GgufType TypeOf() {
    if constexpr (std::is_same_v<T, bool>) return GgufType::kBool;
    if constexpr (std::is_same_v<T, float>) return GgufType::kFloat32;
    if constexpr (std::is_same_v<T, double>) return GgufType::kFloat64;
    if constexpr (std::is_same_v<T, uint8_t>) return GgufType::kUint8;
    if constexpr (std::is_same_v<T, int8_t>) return GgufType::kInt8;
    if constexpr (std::is_same_v<T, uint16_t>) return GgufType::kUint16;
    if constexpr (std::is_same_v<T, int16_t>) return GgufType::kInt16;
    if constexpr (std::is_same_v<T, uint32_t>) return GgufType::kUint32;
    if constexpr (std::is_same_v<T, int32_t>) return GgufType::kInt32;
    if constexpr (std::is_same_v<T, uint64_t>) return GgufType::kUint64;
    return GgufType::kInt64;
  }
  template <typename T>
  static void Put(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  static void PutText(std::string& to, std::string_view text) {
    Put(to, static_cast<uint64_t>(text.size()));
    to += text;
  }
  void Key(std::string_view key, GgufType type) {
    PutText(keys_, key);
    Put(keys_, static_cast<uint32_t>(type));
    ++key_count_;
  }
  void Array(std::string_view key, GgufType element, uint64_t count) {
    Key(key, GgufType::kArray);
    Put(keys_, static_cast<uint32_t>(element));
    Put(keys_, count);
  }

  uint32_t version_;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
  std::string keys_, directory_, data_;
};

}  // namespace plumb::model
