// cli/format.h
// Numbers for people: sizes, rates, durations, counts. And back: "512M" to bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace plumb::cli {

// "98.4 MB", "1.12 GB": powers of 1000, three digits; whole bytes below 1000.
std::string FormatBytes(uint64_t bytes);
// "134.5M", "1.54B": a count of parameters or tokens.
std::string FormatCount(uint64_t count);
// "0:07", "12:03", "3:02:11"; "-:--" for more than 99 hours or less than nothing.
std::string FormatDuration(base::Duration duration);

// "1048576", "512K", "512M", "2G", "1T" (powers of 1024; an ending B or iB is allowed).
// kInvalidArgument: anything else, or beyond 2^63.
base::Result<uint64_t> ParseBytes(std::string_view text);

// `text` in lines of at most `width` columns, broken at spaces; existing line ends are kept.
std::string Wrap(std::string_view text, size_t width);

// Display columns of a UTF-8 text, counted as one per code point.
size_t Columns(std::string_view text);

// A text from a model file or a user, safe for one line of a terminal: control characters (also the
// two-byte C1 ones) become '?', and at most `bytes_max` bytes are kept, ending with "..." when cut.
std::string Printable(std::string_view text, size_t bytes_max);

}  // namespace plumb::cli
