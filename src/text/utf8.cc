// text/utf8.cc: one character's worth of decoding, by the standard's table of well-formed byte
// sequences (3-7).
#include "text/utf8.h"

#include <cstdint>

#include "base/check.h"

namespace plumb::text {
namespace {

struct Lead {
  size_t size;  // bytes of the character; 0 = no character begins so
  uint8_t second_min = 0x80, second_max = 0xBF;  // of the second byte; later ones: 0x80..0xBF
};

Lead ReadLead(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte >= 0xC2 && byte <= 0xDF) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // shorter forms
  if (byte == 0xED) return {3, 0x80, 0x9F};  // surrogates
  if (byte >= 0xE1 && byte <= 0xEF) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};  // shorter forms
  if (byte >= 0xF1 && byte <= 0xF3) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // above U+10FFFF
  return {0};
}

}  // namespace

Utf8Prefix ReadUtf8(std::string_view bytes) {
  DCHECK(!bytes.empty());
  const Lead lead = ReadLead(static_cast<uint8_t>(bytes[0]));
  if (lead.size == 0) return {Utf8Prefix::Kind::kInvalid, 1};
  for (size_t i = 1; i < lead.size; ++i) {
    if (i == bytes.size()) return {Utf8Prefix::Kind::kIncomplete, i};
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8Prefix::Kind::kInvalid, i};
  }
  return {Utf8Prefix::Kind::kCharacter, lead.size};
}

std::string TakeUtf8(std::string& bytes) {
  std::string text;
  size_t done = 0;
  while (done < bytes.size()) {
    const std::string_view rest = std::string_view(bytes).substr(done);
    const Utf8Prefix prefix = ReadUtf8(rest);
    if (prefix.kind == Utf8Prefix::Kind::kIncomplete) break;
    if (prefix.kind == Utf8Prefix::Kind::kCharacter) {
      text += rest.substr(0, prefix.size);
    } else {
      text += kReplacement;
    }
    done += prefix.size;
  }
  bytes.erase(0, done);
  return text;
}

}  // namespace plumb::text
