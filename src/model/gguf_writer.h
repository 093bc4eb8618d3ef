// model/gguf_writer.h
// Writes GGUF: metadata and tensor directory in memory, and the data either here too (small models
// for tests) or by the caller, who streams it behind Head() (quantize.cc). It writes what it is
// told, also nonsense, since the reader's tests need nonsense. Read next: model/tiny_model.h.
#pragma once

#include <cstdint>
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

  GgufWriter& Text(std::string_view key, std::string_view value);
  GgufWriter& Texts(std::string_view key, std::span<const std::string> values);
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
  // A value as another file holds it.
  GgufWriter& Copy(std::string_view key, const GgufValue& value);

  // A tensor with its data. `type` is ggml's number; `bytes` should be what type and dims need.
  GgufWriter& Tensor(std::string_view name, uint32_t type, std::span<const uint64_t> dims,
                     std::string_view bytes);
  // The same with an offset of the caller's choice in the directory.
  GgufWriter& TensorAt(std::string_view name, uint32_t type, std::span<const uint64_t> dims,
                       uint64_t offset, std::string_view bytes);
  // A tensor whose `size` bytes the caller writes, at a multiple of kAlignment behind Head(), in
  // the order of these calls. Not together with the two above.
  GgufWriter& Announce(std::string_view name, uint32_t type, std::span<const uint64_t> dims,
                       uint64_t size);

  // Everything before the data, padded to kAlignment.
  std::string Head() const;
  // Head and the data of Tensor and TensorAt.
  std::string Finish() const { return Head() + data_; }

  static constexpr uint64_t kAlignment = 32;
  static constexpr uint64_t Aligned(uint64_t size) {
    return (size + kAlignment - 1) / kAlignment * kAlignment;
  }

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
  static void PutText(std::string& to, std::string_view text);
  void Key(std::string_view key, GgufType type);
  void Array(std::string_view key, GgufType element, uint64_t count);
  void Enter(std::string_view name, uint32_t type, std::span<const uint64_t> dims, uint64_t offset);

  uint32_t version_;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
  uint64_t announced_ = 0;  // bytes up to the end of the last announced tensor
  std::string keys_, directory_, data_;
};

}  // namespace plumb::model
