// model/metadata.cc
// One store of bytes, one map of views into it.
#include "model/metadata.h"

#include <cstddef>
#include <utility>

#include "base/check.h"

namespace plumb::model {
namespace {

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

}  // namespace

void Metadata::Set(std::string key, GgufValue value, std::string_view bytes) {
  const auto [at, fresh] = bytes_.emplace(std::move(key), bytes);
  CHECK(fresh) << at->first;
  value.bytes = std::as_bytes(std::span(at->second));
  values_.emplace(at->first, value);
}

void Metadata::SetText(std::string key, std::string_view value) {
  Set(std::move(key), {GgufType::kText, GgufType::kText, 1, {}}, value);
}
void Metadata::SetUnsigned(std::string key, uint64_t value) {
  Set(std::move(key), {GgufType::kUint64, GgufType::kUint64, 1, {}}, BytesOf(value));
}
void Metadata::SetNumber(std::string key, double value) {
  Set(std::move(key), {GgufType::kFloat64, GgufType::kFloat64, 1, {}}, BytesOf(value));
}
void Metadata::SetBool(std::string key, bool value) {
  const auto byte = static_cast<uint8_t>(value);
  Set(std::move(key), {GgufType::kBool, GgufType::kBool, 1, {}}, BytesOf(byte));
}
void Metadata::SetBools(std::string key, std::span<const bool> values) {
  std::string bytes;
  for (const bool value : values) bytes += static_cast<char>(value);
  Set(std::move(key), {GgufType::kArray, GgufType::kBool, values.size(), {}}, bytes);
}
void Metadata::SetIds(std::string key, std::span<const uint32_t> values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  Set(std::move(key), {GgufType::kArray, GgufType::kUint32, values.size(), {}}, bytes);
}

}  // namespace plumb::model
