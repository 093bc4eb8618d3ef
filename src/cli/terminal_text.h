// cli/terminal_text.h
// A model's text on a terminal: what it says is shown, what it could make the terminal do is not.
#pragma once

#include <string>
#include <string_view>

namespace plumb::cli {

// Control characters other than line end and tab become U+FFFD (also the C1 ones). `text` is whole
// characters.
std::string TerminalText(std::string_view text);

}  // namespace plumb::cli
