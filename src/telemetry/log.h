// telemetry/log.h
// What operators read: one line per event, as text or JSON, with fields instead of sentences glued
// together. A Logger is built by cli and passed by reference. Rule of the house: no prompt, no
// token, no key ever goes into a line.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/result.h"

namespace plumb::telemetry {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError, kOff };

// "debug", "info", "warn", "error", "off". kInvalidArgument, field "--log-level".
base::Result<LogLevel> ParseLogLevel(std::string_view name);

// A key (a snake_case word of ours) and a text, number or flag; both are borrowed for the call.
struct LogField {
  template <typename T>
    requires std::is_arithmetic_v<T>
  LogField(std::string_view field_key, T number) : key(field_key) {
    if constexpr (std::is_same_v<T, bool>) {
      value = number;
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<double>(number);
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<int64_t>(number);
    } else {
      value = static_cast<uint64_t>(number);
    }
  }
  LogField(std::string_view field_key, std::string_view text) : key(field_key), value(text) {}

  std::string_view key;
  std::variant<std::string_view, int64_t, uint64_t, double, bool> value;
};

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  bool json = false;
};

// A resource type. Thread: any. A line is written at once and in one piece, so not from the step
// loop.
class Logger {
 public:
  explicit Logger(LogOptions options);            // to stderr
  Logger(LogOptions options, std::ostream& out);  // for tests; `out` outlives the logger
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool enabled(LogLevel level) const { return level >= level_; }
  // `message` is a fixed text; what varies goes into fields. Control characters of values are
  // escaped.
  void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});
  void Debug(std::string_view message, std::initializer_list<LogField> fields = {});
  void Info(std::string_view message, std::initializer_list<LogField> fields = {});
  void Warn(std::string_view message, std::initializer_list<LogField> fields = {});
  void Error(std::string_view message, std::initializer_list<LogField> fields = {});

 private:
  class Impl;
  const LogLevel level_;
  const bool json_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace plumb::telemetry
