// api/json_fields.cc
// See json_fields.h. Numbers are converted by std::from_chars, which reports what does not fit.
#include "api/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kLiteralShownMax = 40;

std::string Shown(const std::string& literal) {
  if (literal.size() <= kLiteralShownMax) return literal;
  return literal.substr(0, kLiteralShownMax) + "...";
}

// The whole literal as a T, or nothing when it is not one or does not fit.
template <typename T>
std::optional<T> Convert(const std::string& literal) {
  T value{};
  const char* end = literal.data() + literal.size();
  const auto [stop, error] = std::from_chars(literal.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

template <typename Range>
Status OutOfRange(const JsonValue& value, const std::string& path, Range range) {
  return InvalidArgument(path, fmt::format("{} must be from {} to {}, not {}", path, range.min,
                                           range.max, Shown(value.text)));
}

}  // namespace

Status WrongKind(const JsonValue& value, const std::string& path, std::string_view wanted) {
  return InvalidArgument(
      path, fmt::format("{} must be {}, not {}", path, wanted, JsonKindName(value.kind)));
}

Result<std::optional<double>> ReadNumber(const JsonValue& value, const std::string& path,
                                         NumberRange range) {
  if (value.is_null()) return std::optional<double>();
  if (value.kind != JsonKind::kNumber) return WrongKind(value, path, "a number");
  const auto number = Convert<double>(value.text);
  if (!number || !(*number >= range.min && *number <= range.max))
    return OutOfRange(value, path, range);
  return number;
}

Result<std::optional<int64_t>> ReadInteger(const JsonValue& value, const std::string& path,
                                           IntegerRange range) {
  if (value.is_null()) return std::optional<int64_t>();
  if (value.kind != JsonKind::kNumber) return WrongKind(value, path, "an integer");
  if (value.text.find_first_of(".eE") != std::string::npos) {
    return InvalidArgument(
        path, fmt::format("{} must be an integer, written without point or exponent, not {}", path,
                          Shown(value.text)));
  }
  const auto number = Convert<int64_t>(value.text);
  if (!number || *number < range.min || *number > range.max) return OutOfRange(value, path, range);
  return number;
}

Result<std::optional<bool>> ReadBool(const JsonValue& value, const std::string& path) {
  if (value.is_null()) return std::optional<bool>();
  if (value.kind != JsonKind::kBool) return WrongKind(value, path, "true or false");
  return std::optional<bool>(value.boolean);
}

Result<std::optional<std::string>> ReadString(const JsonValue& value, const std::string& path,
                                              size_t bytes_max) {
  if (value.is_null()) return std::optional<std::string>();
  if (value.kind != JsonKind::kString) return WrongKind(value, path, "a string");
  if (value.text.size() > bytes_max) {
    return InvalidArgument(path, fmt::format("{} has {} bytes; at most {} are taken", path,
                                             value.text.size(), bytes_max));
  }
  return std::optional<std::string>(value.text);
}

Result<std::string> RequireString(const JsonValue& value, const std::string& path,
                                  size_t bytes_max) {
  ASSIGN_OR_RETURN(auto text, ReadString(value, path, bytes_max));
  if (!text) return WrongKind(value, path, "a string");
  return *std::move(text);
}

Result<std::string_view> ReadWord(const JsonValue& value, const std::string& path,
                                  std::initializer_list<std::string_view> words) {
  if (value.is_null()) return std::string_view();
  if (value.kind != JsonKind::kString) return WrongKind(value, path, "a string");
  const auto* word = std::ranges::find(words, std::string_view(value.text));
  if (word != words.end()) return *word;
  const std::span rest(words.begin(), words.size() - 1);
  return InvalidArgument(path, fmt::format("{} must be \"{}\" or \"{}\"", path,
                                           fmt::join(rest, "\", \""), *(words.end() - 1)));
}

Status CheckArray(const JsonValue& value, const std::string& path, size_t count_max) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind != JsonKind::kArray) return WrongKind(value, path, "an array");
  if (value.items.size() <= count_max) return base::OkStatus();
  return InvalidArgument(path, fmt::format("{} has {} entries; at most {} are taken", path,
                                           value.items.size(), count_max));
}

Status CheckObject(const JsonValue& value, const std::string& path, size_t count_max) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  if (value.members.size() <= count_max) return base::OkStatus();
  return InvalidArgument(path, fmt::format("{} has {} entries; at most {} are taken", path,
                                           value.members.size(), count_max));
}

Status MissingMember(const std::string& path) {
  return InvalidArgument(path, fmt::format("{} is missing", path));
}

Status UnknownMember(const std::string& path) {
  return InvalidArgument(path, fmt::format("{} is not a member that is known here", path));
}

}  // namespace plumb::api
