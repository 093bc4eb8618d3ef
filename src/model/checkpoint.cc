// model/checkpoint.cc
// Typed reads of values that a container's reader has checked: a value's bytes are as many as its
// type and count need, so nothing here can leave them.
#include "model/checkpoint.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "base/bytes.h"

namespace plumb::model {
namespace {

using base::Corrupt;
using base::Result;
using base::Status;

template <typename T>
T Load(std::span<const std::byte> bytes, uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Element `index` of packed values of an integer type (or bool), when it fits int64.
std::optional<int64_t> LoadInteger(GgufType type, std::span<const std::byte> bytes,
                                   uint64_t index) {
  switch (type) {
    case GgufType::kUint8:
      return Load<uint8_t>(bytes, index);
    case GgufType::kInt8:
      return Load<int8_t>(bytes, index);
    case GgufType::kUint16:
      return Load<uint16_t>(bytes, index);
    case GgufType::kInt16:
      return Load<int16_t>(bytes, index);
    case GgufType::kUint32:
      return Load<uint32_t>(bytes, index);
    case GgufType::kInt32:
      return Load<int32_t>(bytes, index);
    case GgufType::kBool:
      return Load<uint8_t>(bytes, index);
    case GgufType::kInt64:
      return Load<int64_t>(bytes, index);
    case GgufType::kUint64: {
      const auto value = Load<uint64_t>(bytes, index);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> LoadNumber(GgufType type, std::span<const std::byte> bytes, uint64_t index) {
  if (type == GgufType::kFloat32) return Load<float>(bytes, index);
  if (type == GgufType::kFloat64) return Load<double>(bytes, index);
  if (type == GgufType::kBool) return std::nullopt;
  const auto integer = LoadInteger(type, bytes, index);
  if (!integer) return std::nullopt;
  return static_cast<double>(*integer);
}

Status WrongType(std::string_view key, const GgufValue& value, std::string_view wanted) {
  return Corrupt(fmt::format("{} is {}{}, expected {}", key,
                             value.type == GgufType::kArray ? "an array of " : "",
                             GgufTypeName(value.element_type), wanted));
}

}  // namespace

Result<const GgufValue*> Checkpoint::Find(std::string_view key, std::string_view wanted) const {
  const auto found = values().find(key);
  if (found == values().end()) {
    return base::NotFound(fmt::format("the model file has no key {} ({} expected)", key, wanted));
  }
  return &found->second;
}

Result<uint64_t> Checkpoint::Unsigned(std::string_view key) const {
  constexpr std::string_view kWanted = "an integer >= 0";
  ASSIGN_OR_RETURN(const GgufValue* value, Find(key, kWanted));
  if (value->type == GgufType::kUint64) return Load<uint64_t>(value->bytes, 0);
  if (value->type == GgufType::kBool) return WrongType(key, *value, kWanted);
  const auto integer = LoadInteger(value->type, value->bytes, 0);
  if (!integer) return WrongType(key, *value, kWanted);
  if (*integer < 0) return Corrupt(fmt::format("{} is {}, expected {}", key, *integer, kWanted));
  return static_cast<uint64_t>(*integer);
}

Result<double> Checkpoint::Number(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Find(key, "a number"));
  const auto number = LoadNumber(value->type, value->bytes, 0);
  if (!number) return WrongType(key, *value, "a number");
  return *number;
}

Result<bool> Checkpoint::Bool(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Find(key, "a bool"));
  if (value->type != GgufType::kBool) return WrongType(key, *value, "a bool");
  return value->bytes[0] != std::byte{0};
}

Result<std::string_view> Checkpoint::Text(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Find(key, "text"));
  if (value->type != GgufType::kText) return WrongType(key, *value, "text");
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

Result<std::vector<std::string_view>> Checkpoint::Texts(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Find(key, "an array of text"));
  if (value->type != GgufType::kArray || value->element_type != GgufType::kText) {
    return WrongType(key, *value, "an array of text");
  }
  std::vector<std::string_view> texts;
  texts.reserve(value->count);
  base::ByteReader reader(value->bytes);
  for (uint64_t i = 0; i < value->count; ++i) {
    // Walked once by the parser already.
    const auto size = reader.Read<uint64_t>();
    CHECK(size.has_value()) << key;
    const auto text = reader.TakeText(*size);
    CHECK(text.has_value()) << key;
    texts.push_back(*text);
  }
  return texts;
}

Result<std::vector<double>> Checkpoint::Numbers(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Find(key, "an array of numbers"));
  if (value->type != GgufType::kArray) return WrongType(key, *value, "an array of numbers");
  std::vector<double> numbers(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto number = LoadNumber(value->element_type, value->bytes, i);
    if (!number) return WrongType(key, *value, "an array of numbers");
    numbers[i] = *number;
  }
  return numbers;
}

Result<std::vector<int64_t>> Checkpoint::Integers(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Find(key, "an array of integers"));
  if (value->type != GgufType::kArray) return WrongType(key, *value, "an array of integers");
  std::vector<int64_t> integers(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto integer = LoadInteger(value->element_type, value->bytes, i);
    if (!integer) return WrongType(key, *value, "an array of integers");
    integers[i] = *integer;
  }
  return integers;
}

}  // namespace plumb::model
