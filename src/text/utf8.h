// text/utf8.h
// UTF-8 that arrives in pieces: what is a character, what may still become one, what never will.
// Source: Unicode 15, section 3.9, table 3-7 and "U+FFFD substitution of maximal subparts".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumb::text {

// U+FFFD, the replacement character.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// How the bytes at the start of a text read.
struct Utf8Prefix {
  enum class Kind { kCharacter, kInvalid, kIncomplete };
  Kind kind;
  // kCharacter: its bytes. kInvalid: the maximal invalid part, >= 1. kIncomplete: all that is
  // there, a valid beginning of a character.
  size_t size;
};

// `bytes` is not empty.
Utf8Prefix ReadUtf8(std::string_view bytes);

// Moves everything that is decided from `bytes` to the returned text: characters as they are, each
// maximal invalid part as U+FFFD. What stays in `bytes` is incomplete, at most 3 bytes.
std::string TakeUtf8(std::string& bytes);

}  // namespace plumb::text
