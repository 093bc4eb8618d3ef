// base/bytes.h
// Reading numbers out of untrusted bytes: every read is range-checked, every product of sizes is
// overflow-checked. Little-endian, as all formats we read are.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace plumb::base {

// a * b and a + b, or nothing on overflow.
constexpr std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}
constexpr std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// A cursor over borrowed bytes. A failed read returns nothing and moves nothing.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }

  template <typename T>
    requires std::is_arithmetic_v<T>
  std::optional<T> Read() {
    if (remaining() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // The next `size` bytes, borrowed from the underlying memory.
  std::optional<std::span<const std::byte>> Take(uint64_t size) {
    if (remaining() < size) return std::nullopt;
    auto taken = bytes_.subspan(offset_, size);
    offset_ += size;
    return taken;
  }
  std::optional<std::string_view> TakeText(uint64_t size) {
    auto taken = Take(size);
    if (!taken) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(taken->data()), taken->size());
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t offset_ = 0;
};

}  // namespace plumb::base
