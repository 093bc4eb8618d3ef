// cli/option.h
// One setting of a subcommand: a name that serves as flag, variable and file key alike, how a text
// becomes a value, and what --help says. The functions below make the kinds there are. The target
// is borrowed; its value at that moment is the default, and the default is what --help prints.
// Read next: cli/option_table.h, which finds the text.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace plumb::cli {

struct Option {
  std::string name;          // "kv-memory": --kv-memory, PLUMB_KV_MEMORY, kv-memory = ...
  std::string kind;          // "BYTES", shown in help; empty: a switch, which takes no value
  std::string default_text;  // "" = none
  std::string help;          // a sentence, with unit
  bool repeatable = false;   // each occurrence (or element of a list) calls `set`
  // Parses and assigns. kInvalidArgument: the message alone; the table adds where the text stood.
  std::function<base::Status(std::string_view text)> set;
};

struct IntegerRange {
  uint64_t min = 0;
  uint64_t max = 0;
};
struct NumberRange {
  double min = 0;
  double max = 0;
  bool min_excluded = false;
};

Option Text(std::string name, std::string& value, std::string kind, std::string help);
// A text that may be absent, which is not the same as empty.
Option Text(std::string name, std::optional<std::string>& value, std::string kind,
            std::string help);
// Repeatable; an occurrence appends.
Option Texts(std::string name, std::vector<std::string>& values, std::string kind,
             std::string help);
Option Choice(std::string name, std::string& value, std::vector<std::string> choices,
              std::string help);
Option Switch(std::string name, bool& value, std::string help);
// Bytes, also with K, M, G, T. 0 means `zero_means` when that is not empty.
Option Bytes(std::string name, uint64_t& value, IntegerRange range, std::string zero_means,
             std::string help);

// Decimal integers; `kind` names what is counted ("TOKENS"). T: an unsigned type or an optional of
// one (whose absence has no default text).
template <typename T>
Option Integer(std::string name, T& value, IntegerRange range, std::string kind, std::string help);
// Decimal fractions, finite. T: float, double or an optional of one.
template <typename T>
Option Number(std::string name, T& value, NumberRange range, std::string kind, std::string help);

// ---- how the templates are made ----

Option MakeInteger(std::string name, IntegerRange range, std::string kind,
                   std::optional<uint64_t> initial, std::string help,
                   std::function<void(uint64_t)> assign);
Option MakeNumber(std::string name, NumberRange range, std::string kind,
                  std::optional<double> initial, std::string help,
                  std::function<void(double)> assign);

template <typename T>
struct Unwrapped {
  using Type = T;
};
template <typename T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};

template <typename T>
Option Integer(std::string name, T& value, IntegerRange range, std::string kind, std::string help) {
  using Raw = typename Unwrapped<T>::Type;
  static_assert(std::numeric_limits<Raw>::is_integer && !std::numeric_limits<Raw>::is_signed);
  std::optional<uint64_t> initial;
  if (const std::optional<Raw> known = value; known) initial = *known;
  return MakeInteger(std::move(name), range, std::move(kind), initial, std::move(help),
                     [&value](uint64_t parsed) { value = static_cast<Raw>(parsed); });
}

template <typename T>
Option Number(std::string name, T& value, NumberRange range, std::string kind, std::string help) {
  using Raw = typename Unwrapped<T>::Type;
  std::optional<double> initial;
  if (const std::optional<Raw> known = value; known) initial = static_cast<double>(*known);
  return MakeNumber(std::move(name), range, std::move(kind), initial, std::move(help),
                    [&value](double parsed) { value = static_cast<Raw>(parsed); });
}

}  // namespace plumb::cli
