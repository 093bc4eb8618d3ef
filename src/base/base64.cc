// base/base64.cc
// See base64.h.
#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace plumb::base {

namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 0xFF;

constexpr std::array<uint8_t, 256> MakeValues() {
  std::array<uint8_t, 256> values{};
  for (uint8_t& value : values) value = kNone;
  for (size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<uint8_t>(i);
  return values;
}
constexpr std::array<uint8_t, 256> kValues = MakeValues();

uint32_t Byte(char c) { return static_cast<unsigned char>(c); }

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = Byte(bytes[i]) << 16;
    if (count > 1) group |= Byte(bytes[i + 1]) << 8;
    if (count > 2) group |= Byte(bytes[i + 2]);
    out += kDigits[group >> 18];
    out += kDigits[group >> 12 & 63];
    out += count > 1 ? kDigits[group >> 6 & 63] : '=';
    out += count > 2 ? kDigits[group & 63] : '=';
  }
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    size_t digits = 4;
    if (last && text[i + 3] == '=') digits = text[i + 2] == '=' ? 2 : 3;
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const uint8_t value = j < digits ? kValues[Byte(text[i + j])] : uint8_t{0};
      if (value == kNone) return std::nullopt;
      group = group << 6 | value;
    }
    const uint32_t spare = digits == 4 ? 0 : digits == 3 ? group & 0xFF : group & 0xFFFF;
    if (spare != 0) return std::nullopt;
    out += static_cast<char>(group >> 16);
    if (digits > 2) out += static_cast<char>(group >> 8 & 0xFF);
    if (digits > 3) out += static_cast<char>(group & 0xFF);
  }
  return out;
}

}  // namespace plumb::base
