// cli/terminal_text.cc
// Byte by byte, behind cli/terminal_text.h.
#include "cli/terminal_text.h"

namespace plumb::cli {

std::string TerminalText(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
      shown += kReplacement;
      ++i;
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) {
      shown += kReplacement;
    } else {
      shown += text[i];
    }
  }
  return shown;
}

}  // namespace plumb::cli
