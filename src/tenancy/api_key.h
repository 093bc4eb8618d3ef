// tenancy/api_key.h
// Who may call at all: a fixed list of keys, until projects and quotas exist. Only SHA-256 digests
// are kept, compared in constant time, and a refusal does not tell how close a guess was.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

 private:
  using Digest = std::array<uint8_t, 32>;
  static Digest Hash(std::string_view key);
  std::vector<Digest> digests_;
};

}  // namespace plumb::tenancy
