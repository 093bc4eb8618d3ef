// tenancy/api_key.h
// Who may call at all: a fixed list of keys, until projects and quotas exist. Only digests are
// kept, compared in constant time, and a refusal does not tell how close a guess was. A key is a
// tenant: what was computed for one is not reused for another.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"

namespace plumb::tenancy {

constexpr size_t kKeysMax = 1024;
constexpr size_t kKeyBytesMin = 8;
constexpr size_t kKeyBytesMax = 512;

// The token of an `Authorization: Bearer TOKEN` value (the scheme in any case, RFC 6750), borrowed;
// nothing when it is of another form.
std::optional<std::string_view> BearerToken(std::string_view authorization);

// A value type, immutable. Thread: any.
class ApiKeys {
 public:
  // No keys: everyone may call.
  ApiKeys() = default;

  // kInvalidArgument, field "--api-key": too many, or one too short, too long or not of visible
  // ASCII characters. The message never holds a key, only its place in the list.
  static base::Result<ApiKeys> FromKeys(const std::vector<std::string>& keys);

  bool required() const { return !digests_.empty(); }

  // Index of the key in the list, nothing where none is required. `authorization` is the header's
  // value, nothing when absent. kUnauthenticated: missing, malformed or wrong; the time taken
  // depends on the number of keys and the length of what was sent, not on its content.
  base::Result<std::optional<uint32_t>> Check(std::optional<std::string_view> authorization) const;

  // Names the key's tenant, on every server and after every start: BLAKE3 of the key. All zeros for
  // index 0 where none is required. `index` is one of Check's.
  base::Hash256 Isolation(uint32_t index) const;
  // The key of that tenant; nothing when there is none any more. Without keys all callers are one,
  // and have the index 0.
  std::optional<uint32_t> Find(const base::Hash256& isolation) const;

 private:
  using Digest = std::array<uint8_t, 32>;
  static Digest Hash(std::string_view key);
  std::vector<Digest> digests_;
  std::vector<base::Hash256> isolations_;  // of each key
};

}  // namespace plumb::tenancy
