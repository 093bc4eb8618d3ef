// telemetry/log.cc
// One line per event over spdlog, which serialises the writers and stamps the time; the rest of the
// line is made here, so that values cannot break out of it.
#include "telemetry/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <cmath>
#include <iterator>

namespace plumb::telemetry {

namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"debug", "info", "warn", "error", "off"};
// A longer value is cut: a log line must not become a copy of a request.
constexpr size_t kValueBytesMax = 1024;

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

// Valid inside a JSON string; in text lines the same escapes keep a value on its line. Bytes above
// 0x7f pass only in JSON-safe form: what is not ASCII is escaped byte by byte as \u00XX, since it
// may not be UTF-8.
void AppendEscaped(std::string& out, std::string_view text) {
  for (char c : text.substr(0, kValueBytesMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else if (byte < 0x20 || byte >= 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out.push_back(c);
    }
  }
  if (text.size() > kValueBytesMax) out.append("...");
}

void AppendValue(std::string& out, const LogField& field) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    out.push_back('"');
    AppendEscaped(out, *text);
    out.push_back('"');
  } else if (const auto* number = std::get_if<double>(&field.value)) {
    // JSON has no NaN and no infinity.
    out.append(std::isfinite(*number) ? fmt::format("{}", *number) : "null");
  } else if (const auto* flag = std::get_if<bool>(&field.value)) {
    out.append(*flag ? "true" : "false");
  } else if (const auto* whole = std::get_if<int64_t>(&field.value)) {
    out.append(fmt::format("{}", *whole));
  } else {
    out.append(fmt::format("{}", std::get<uint64_t>(field.value)));
  }
}

}  // namespace

base::Result<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  return base::InvalidArgument(
      "--log-level", fmt::format("'{}' is no level; use debug, info, warn, error or off", name));
}

class Logger::Impl {
 public:
  Impl(bool json, spdlog::sink_ptr sink) : logger_("plumb", std::move(sink)) {
    const char* pattern =
        json ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",%v}" : "%Y-%m-%dT%H:%M:%S.%eZ %v";
    logger_.set_formatter(
        std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
    logger_.set_level(spdlog::level::trace);
    logger_.flush_on(spdlog::level::trace);
  }
  void Write(LogLevel level, const std::string& line) {
    logger_.log(ToSpdlog(level), spdlog::string_view_t(line));
  }

 private:
  spdlog::logger logger_;
};

Logger::Logger(LogOptions options)
    : level_(options.level),
      json_(options.json),
      impl_(std::make_unique<Impl>(options.json,
                                   std::make_shared<spdlog::sinks::stderr_sink_mt>())) {}

Logger::Logger(LogOptions options, std::ostream& out)
    : level_(options.level),
      json_(options.json),
      impl_(std::make_unique<Impl>(options.json,
                                   std::make_shared<spdlog::sinks::ostream_sink_mt>(out))) {}

Logger::~Logger() = default;

void Logger::Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!enabled(level) || level == LogLevel::kOff) return;
  const std::string_view name = kLevelNames[static_cast<size_t>(level)];
  std::string line;
  if (json_) {
    line = fmt::format("\"level\":\"{}\",\"message\":\"", name);
    AppendEscaped(line, message);
    line.push_back('"');
    for (const LogField& field : fields) {
      line.append(",\"");
      AppendEscaped(line, field.key);
      line.append("\":");
      AppendValue(line, field);
    }
  } else {
    line = fmt::format("{:<5} ", name);
    AppendEscaped(line, message);
    for (const LogField& field : fields) {
      line.push_back(' ');
      AppendEscaped(line, field.key);
      line.push_back('=');
      AppendValue(line, field);
    }
  }
  impl_->Write(level, line);
}

void Logger::Debug(std::string_view message, std::initializer_list<LogField> fields) {
  Log(LogLevel::kDebug, message, fields);
}
void Logger::Info(std::string_view message, std::initializer_list<LogField> fields) {
  Log(LogLevel::kInfo, message, fields);
}
void Logger::Warn(std::string_view message, std::initializer_list<LogField> fields) {
  Log(LogLevel::kWarn, message, fields);
}
void Logger::Error(std::string_view message, std::initializer_list<LogField> fields) {
  Log(LogLevel::kError, message, fields);
}

}  // namespace plumb::telemetry
