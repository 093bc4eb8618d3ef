// base/hash.h
// BLAKE3-256, the one hash that names content (DESIGN, "One identity"): pages, fingerprints,
// isolation keys. 256 bits, so that equal hashes may be taken for equal content, also against
// somebody who searches for a collision. Implemented by the crate blake3.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace plumb::base {

// A value type, ordered by its bytes. All zeros is a valid value that no known content has.
struct Hash256 {
  std::array<uint8_t, 32> bytes{};

  auto operator<=>(const Hash256&) const = default;
  // Its first eight bytes: for spreading over a table, never for telling two apart.
  uint64_t prefix() const;
  std::span<const std::byte> view() const { return std::as_bytes(std::span(bytes)); }
};

constexpr size_t kHashPartsMax = 8;

// The hash of the parts, one after the other (at most kHashPartsMax, CHECK): where a part's length
// varies, the caller hashes that length too. Thread: any; pure. Allocates nothing.
Hash256 Blake3(std::initializer_list<std::span<const std::byte>> parts);

}  // namespace plumb::base
