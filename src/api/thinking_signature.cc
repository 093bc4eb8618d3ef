// api/thinking_signature.cc
// See thinking_signature.h. A signature is "plumb1.", the checksum in base64, ".", and the thinking
// in base64 or nothing.
#include "api/thinking_signature.h"

#include <span>

#include "base/base64.h"
#include "base/hash.h"

namespace plumb::api {

namespace {

constexpr std::string_view kBegin = "plumb1.";
constexpr size_t kChecksumBytes = 15;  // of the hash; 20 digits without padding

std::string Checksum(std::string_view thinking) {
  constexpr std::string_view kTag = "plumb.thinking.1";
  const base::Hash256 hash =
      base::Blake3({std::as_bytes(std::span(kTag)), std::as_bytes(std::span(thinking))});
  return base::EncodeBase64(
      std::string_view(reinterpret_cast<const char*>(hash.bytes.data()), kChecksumBytes));
}

}  // namespace

std::string ThinkingSignature(std::string_view thinking, bool carries) {
  std::string signature(kBegin);
  signature += Checksum(thinking);
  signature += '.';
  if (carries) signature += base::EncodeBase64(thinking);
  return signature;
}

std::optional<std::string> ThinkingOf(std::string_view signature) {
  if (!signature.starts_with(kBegin)) return std::nullopt;
  signature.remove_prefix(kBegin.size());
  const size_t dot = signature.find('.');
  if (dot == std::string_view::npos || dot + 1 == signature.size()) return std::nullopt;
  auto thinking = base::DecodeBase64(signature.substr(dot + 1));
  if (!thinking || Checksum(*thinking) != signature.substr(0, dot)) return std::nullopt;
  return thinking;
}

}  // namespace plumb::api
