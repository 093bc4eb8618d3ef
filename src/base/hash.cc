// base/hash.cc
// A call into the Rust library, behind base/hash.h.
#include "base/hash.h"

#include <cstring>

#include "base/check.h"
#include "plumb_rust.h"

namespace plumb::base {

uint64_t Hash256::prefix() const {
  uint64_t value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

Hash256 Blake3(std::initializer_list<std::span<const std::byte>> parts) {
  CHECK(parts.size() <= kHashPartsMax) << parts.size();
  std::array<plumb_view, kHashPartsMax> views;
  size_t count = 0;
  for (const std::span<const std::byte> part : parts) {
    views[count++] = {reinterpret_cast<const uint8_t*>(part.data()), part.size()};
  }
  Hash256 hash;
  plumb_blake3(views.data(), count, hash.bytes.data());
  return hash;
}

}  // namespace plumb::base
