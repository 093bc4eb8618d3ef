// cli/option.cc: how each kind of setting reads its text, behind cli/option.h. Whole texts only
// ("8o" is not 8), no locale, no signs where a number cannot be negative.
#include "cli/option.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/format.h"
#include "cli/suggest.h"

namespace plumb::cli {
namespace {

constexpr size_t kQuotedBytesMax = 60;

base::Status Bad(std::string message) { return base::InvalidArgument("", std::move(message)); }

std::string Quoted(std::string_view text) { return "'" + Printable(text, kQuotedBytesMax) + "'"; }

}  // namespace

Option Text(std::string name, std::string& value, std::string kind, std::string help) {
  auto set = [&value](std::string_view text) {
    if (text.find('\0') != std::string_view::npos) return Bad("contains a NUL byte");
    value = std::string(text);
    return base::OkStatus();
  };
  return {std::move(name), std::move(kind), value, std::move(help), false, set};
}

Option Text(std::string name, std::optional<std::string>& value, std::string kind,
            std::string help) {
  auto set = [&value](std::string_view text) {
    if (text.find('\0') != std::string_view::npos) return Bad("contains a NUL byte");
    value = std::string(text);
    return base::OkStatus();
  };
  return {std::move(name), std::move(kind), value.value_or(""), std::move(help), false, set};
}

Option Texts(std::string name, std::vector<std::string>& values, std::string kind,
             std::string help) {
  auto set = [&values](std::string_view text) {
    if (text.find('\0') != std::string_view::npos) return Bad("contains a NUL byte");
    values.emplace_back(text);
    return base::OkStatus();
  };
  return {std::move(name), std::move(kind), "", std::move(help), true, set};
}

Option Choice(std::string name, std::string& value, std::vector<std::string> choices,
              std::string help) {
  std::string kind;
  for (const std::string& choice : choices) kind += (kind.empty() ? "" : "|") + choice;
  auto set = [&value, choices = std::move(choices), kind](std::string_view text) {
    for (const std::string& choice : choices) {
      if (text != choice) continue;
      value = choice;
      return base::OkStatus();
    }
    return Bad(Quoted(text) + " is not one of " + kind + DidYouMean(text, choices));
  };
  return {std::move(name), kind, value, std::move(help), false, set};
}

Option Switch(std::string name, bool& value, std::string help) {
  auto set = [&value](std::string_view text) {
    for (const std::string_view yes : {"true", "1", "yes", "on"}) {
      if (text == yes) return value = true, base::OkStatus();
    }
    for (const std::string_view no : {"false", "0", "no", "off"}) {
      if (text == no) return value = false, base::OkStatus();
    }
    return Bad(Quoted(text) + " is neither true nor false");
  };
  return {std::move(name), "", "", std::move(help), false, set};
}

Option Bytes(std::string name, uint64_t& value, IntegerRange range, std::string zero_means,
             std::string help) {
  auto set = [&value, range, zero_means](std::string_view text) -> base::Status {
    const base::Result<uint64_t> parsed = ParseBytes(text);
    if (!parsed.ok()) return parsed.status();
    const bool zero_allowed = *parsed == 0 && !zero_means.empty();
    if (!zero_allowed && (*parsed < range.min || *parsed > range.max)) {
      return Bad(fmt::format("{} is outside {} to {}", Quoted(text), FormatBytes(range.min),
                             FormatBytes(range.max)));
    }
    value = *parsed;
    return base::OkStatus();
  };
  std::string initial = value == 0 ? zero_means : FormatBytes(value);
  return {std::move(name), "BYTES", std::move(initial), std::move(help), false, set};
}

Option MakeInteger(std::string name, IntegerRange range, std::string kind,
                   std::optional<uint64_t> initial, std::string help,
                   std::function<void(uint64_t)> assign) {
  auto set = [range, assign = std::move(assign)](std::string_view text) {
    uint64_t parsed = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, parsed);
    if (error != std::errc() || rest != end || parsed < range.min || parsed > range.max) {
      return Bad(fmt::format("{} is not a whole number from {} to {}", Quoted(text), range.min,
                             range.max));
    }
    assign(parsed);
    return base::OkStatus();
  };
  std::string shown = initial ? fmt::format("{}", *initial) : "";
  return {std::move(name), std::move(kind), std::move(shown), std::move(help), false, set};
}

Option MakeNumber(std::string name, NumberRange range, std::string kind,
                  std::optional<double> initial, std::string help,
                  std::function<void(double)> assign) {
  auto set = [range, assign = std::move(assign)](std::string_view text) {
    double parsed = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, parsed);
    const bool low = parsed < range.min || (range.min_excluded && parsed == range.min);
    if (error != std::errc() || rest != end || !std::isfinite(parsed) || low ||
        parsed > range.max) {
      return Bad(fmt::format("{} is not a number {} {} {} {}", Quoted(text),
                             range.min_excluded ? "above" : "from", range.min,
                             range.min_excluded ? "and at most" : "to", range.max));
    }
    assign(parsed);
    return base::OkStatus();
  };
  std::string shown = initial ? fmt::format("{:g}", *initial) : "";
  return {std::move(name), std::move(kind), std::move(shown), std::move(help), false, set};
}

}  // namespace plumb::cli
