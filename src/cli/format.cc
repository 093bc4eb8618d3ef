// cli/format.cc
// Numbers for people, behind cli/format.h.
#include "cli/format.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace plumb::cli {
namespace {

// Three significant digits: 1.12, 98.4, 491.
std::string ThreeDigits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1000.0;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000.0;
    ++unit;
  }
  return fmt::format("{} {}", ThreeDigits(value), kUnits[unit]);
}

std::string FormatCount(uint64_t count) {
  if (count < 1000) return fmt::format("{}", count);
  constexpr std::array<char, 4> kUnits = {'K', 'M', 'B', 'T'};
  double value = static_cast<double>(count) / 1000.0;
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000.0;
    ++unit;
  }
  return fmt::format("{}{}", ThreeDigits(value), kUnits[unit]);
}

std::string FormatDuration(base::Duration duration) {
  const int64_t seconds = duration.ns / 1'000'000'000;
  if (duration.ns < 0 || seconds >= 99 * 3600) return "-:--";
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

base::Result<uint64_t> ParseBytes(std::string_view text) {
  const base::Status bad = base::InvalidArgument(
      "", fmt::format("'{}' is not a size; write bytes, or a number with K, M, G or T",
                      Printable(text, 40)));
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return bad;
  std::string_view unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
  if (unit.ends_with("iB")) {
    unit.remove_suffix(2);
    if (unit.empty()) return bad;
  } else if (unit.ends_with('B')) {
    unit.remove_suffix(1);
  }
  if (unit.empty()) return number >> 63 ? base::Result<uint64_t>(bad) : number;
  const size_t power = std::string_view("KMGT").find(unit.size() == 1 ? unit[0] & ~0x20 : 0);
  if (power == std::string_view::npos) return bad;
  const unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
  if (number >> (63 - shift) != 0) return bad;
  return number << shift;
}

std::string Wrap(std::string_view text, size_t width) {
  std::string wrapped;
  size_t column = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > 0 && column + 1 + word.size() > width) {
      wrapped += '\n';
      column = 0;
    }
    if (column > 0) wrapped += ' ', ++column;
    wrapped += word;
    column += word.size();
    if (end < text.size() && text[end] == '\n') {
      wrapped += '\n';
      column = 0;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return wrapped;
}

size_t Columns(std::string_view text) {
  size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return columns;
}

std::string Printable(std::string_view text, size_t bytes_max) {
  std::string safe;
  for (size_t i = 0; i < text.size() && safe.size() < bytes_max; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080..U+009F
      safe += '?';
      ++i;
    } else {
      safe += byte < 0x20 || byte == 0x7F ? '?' : text[i];
    }
  }
  if (text.size() > bytes_max) {
    // Not in the middle of a character.
    while (!safe.empty() && (static_cast<unsigned char>(safe.back()) & 0xC0) == 0x80)
      safe.pop_back();
    if (!safe.empty() && static_cast<unsigned char>(safe.back()) >= 0xC0) safe.pop_back();
    safe += "...";
  }
  return safe;
}

}  // namespace plumb::cli
