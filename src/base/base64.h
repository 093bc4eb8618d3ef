// base/base64.h
// Base64 (RFC 4648, section 4, with padding): bytes as text in JSON. Decoding is strict, so that
// one value has one spelling: no line breaks, no missing padding, no bits left over.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plumb::base {

std::string EncodeBase64(std::string_view bytes);

// Nothing when `text` is not what EncodeBase64 gives for any bytes. Takes time in proportion to the
// text.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace plumb::base
