// api/json_fields.h
// Typed, range-checked reads of single JSON values. A value that is null counts as absent, as in
// OpenAI's API. Ranges are checked on the literal as written, before any conversion can lose it:
// 2^63, 1e400, 0.5 for a count, "1" for 1 are refused, never wrapped, rounded or guessed. Every
// error is kInvalidArgument with `path` as its field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "api/json.h"
#include "base/result.h"

namespace plumb::api {

struct NumberRange {
  double min;
  double max;  // inclusive, both
};
struct IntegerRange {
  int64_t min;
  int64_t max;  // inclusive, both
};

base::Result<std::optional<double>> ReadNumber(const JsonValue& value, const std::string& path,
                                               NumberRange range);
base::Result<std::optional<int64_t>> ReadInteger(const JsonValue& value, const std::string& path,
                                                 IntegerRange range);
base::Result<std::optional<bool>> ReadBool(const JsonValue& value, const std::string& path);
// At most `bytes_max` bytes of UTF-8.
base::Result<std::optional<std::string>> ReadString(const JsonValue& value, const std::string& path,
                                                    size_t bytes_max);

// The same of a value that may not be null.
base::Result<std::string> RequireString(const JsonValue& value, const std::string& path,
                                        size_t bytes_max);

// The one of two or more `words` that the value is, "" when null. Lives as long as they do.
base::Result<std::string_view> ReadWord(const JsonValue& value, const std::string& path,
                                        std::initializer_list<std::string_view> words);

// Ok when null or of that kind with at most `count_max` items or members.
base::Status CheckArray(const JsonValue& value, const std::string& path, size_t count_max);
base::Status CheckObject(const JsonValue& value, const std::string& path, size_t count_max);

// "temperature must be a number, not a string".
base::Status WrongKind(const JsonValue& value, const std::string& path, std::string_view wanted);
base::Status MissingMember(const std::string& path);  // "tool_choice.name is missing"
base::Status UnknownMember(const std::string& path);

}  // namespace plumb::api
