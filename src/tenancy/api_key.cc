// tenancy/api_key.cc
// See api_key.h. Every key is compared with every digest, all bytes, whatever matched before.
#include "tenancy/api_key.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <span>

#include "base/check.h"

namespace plumb::tenancy {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr std::string_view kScheme = "bearer";
constexpr std::string_view kIsolationTag = "plumb.isolation.1";

bool IsVisible(char c) { return c > 0x20 && c < 0x7f; }

Status Unauthenticated(std::string message) {
  return Status(base::Code::kUnauthenticated, std::move(message)).WithReason("invalid_api_key");
}

}  // namespace

std::optional<std::string_view> BearerToken(std::string_view authorization) {
  if (authorization.size() <= kScheme.size()) return std::nullopt;
  for (size_t i = 0; i < kScheme.size(); ++i) {
    const char c = authorization[i];
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower != kScheme[i]) return std::nullopt;
  }
  std::string_view token = authorization.substr(kScheme.size());
  const size_t begin = token.find_first_not_of(' ');
  if (begin == 0 || begin == std::string_view::npos) return std::nullopt;
  token.remove_prefix(begin);
  token.remove_suffix(token.size() - 1 - token.find_last_not_of(' '));
  if (token.size() > kKeyBytesMax || !std::all_of(token.begin(), token.end(), IsVisible)) {
    return std::nullopt;
  }
  return token;
}

Result<ApiKeys> ApiKeys::FromKeys(const std::vector<std::string>& keys) {
  if (keys.size() > kKeysMax) {
    return InvalidArgument("--api-key", fmt::format("{} keys are given; at most {} are allowed",
                                                    keys.size(), kKeysMax));
  }
  ApiKeys result;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = keys[i];
    if (key.size() < kKeyBytesMin || key.size() > kKeyBytesMax) {
      return InvalidArgument(
          "--api-key", fmt::format("key {} has {} bytes; it must have {} to {}", i + 1, key.size(),
                                   kKeyBytesMin, kKeyBytesMax));
    }
    if (!std::all_of(key.begin(), key.end(), IsVisible)) {
      return InvalidArgument("--api-key", fmt::format("key {} has a space or a character outside "
                                                      "visible ASCII, which no header can carry",
                                                      i + 1));
    }
    result.digests_.push_back(Hash(key));
    result.isolations_.push_back(base::Blake3(
        {std::as_bytes(std::span(kIsolationTag)), std::as_bytes(std::span<const char>(key))}));
  }
  return result;
}

ApiKeys::Digest ApiKeys::Hash(std::string_view key) {
  Digest digest;
  unsigned size = 0;
  const int ok = EVP_Digest(key.data(), key.size(), digest.data(), &size, EVP_sha256(), nullptr);
  CHECK(ok == 1 && size == digest.size()) << "SHA-256 is not available";
  return digest;
}

Result<std::optional<uint32_t>> ApiKeys::Check(
    std::optional<std::string_view> authorization) const {
  if (!required()) return std::optional<uint32_t>();
  if (!authorization) {
    return Unauthenticated("No API key was given; send it as 'Authorization: Bearer KEY'.");
  }
  const auto token = BearerToken(*authorization);
  if (!token) {
    return Unauthenticated("The Authorization header must have the form 'Bearer KEY'.");
  }
  const Digest digest = Hash(*token);
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < digests_.size(); ++i) {
    if (CRYPTO_memcmp(digest.data(), digests_[i].data(), digest.size()) == 0) found = i;
  }
  if (!found) return Unauthenticated("The API key is not valid.");
  return found;
}

base::Hash256 ApiKeys::Isolation(uint32_t index) const {
  CHECK(index < std::max<size_t>(1, isolations_.size())) << "key " << index;
  return isolations_.empty() ? base::Hash256() : isolations_[index];
}

std::optional<uint32_t> ApiKeys::Find(const base::Hash256& isolation) const {
  if (!required()) return 0;
  const auto found = std::ranges::find(isolations_, isolation);
  if (found == isolations_.end()) return std::nullopt;
  return static_cast<uint32_t>(found - isolations_.begin());
}

}  // namespace plumb::tenancy
