// telemetry/log_test.cc
// A line is one line, whatever is in it, and says what was logged.
#include "telemetry/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

namespace plumb::telemetry {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

TEST(Logger, WritesText) {
  std::ostringstream out;
  Logger log({.level = LogLevel::kInfo}, out);
  log.Info("listening", {{"port", 8000}, {"host", "::1"}, {"ready", true}, {"load", 0.5}});
  EXPECT_THAT(out.str(), MatchesRegex("[0-9-]+T[0-9:.]+Z info  listening port=8000 "
                                      "host=\"::1\" ready=true load=0.5\n"));
}

TEST(Logger, WritesJson) {
  std::ostringstream out;
  Logger log({.level = LogLevel::kDebug, .json = true}, out);
  log.Warn("slow \"disk\"", {{"bytes", uint64_t{18446744073709551615u}},
                             {"delta", -1},
                             {"ratio", std::nan("")},
                             {"name", std::string("a\\b")}});
  EXPECT_THAT(out.str(), testing::StartsWith("{\"time\":\""));
  EXPECT_THAT(out.str(), EndsWith("\"level\":\"warn\",\"message\":\"slow \\\"disk\\\"\","
                                  "\"bytes\":18446744073709551615,\"delta\":-1,\"ratio\":null,"
                                  "\"name\":\"a\\\\b\"}\n"));
}

TEST(Logger, KeepsAHostileValueOnItsLine) {
  for (bool json : {false, true}) {
    std::ostringstream out;
    Logger log({.json = json}, out);
    const std::string value = "a\nERROR forged\r\x1b[2J\xff\x7f" + std::string(5000, 'x');
    log.Error("refused", {{"value", value}});
    const std::string line = out.str();
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
    EXPECT_EQ(line.find('\xff'), std::string::npos);
    EXPECT_THAT(line, HasSubstr("a\\nERROR forged\\u000d\\u001b[2J\\u00ff\\u007f"));
    EXPECT_LT(line.size(), 1500u);
  }
}

TEST(Logger, DropsWhatIsBelowItsLevel) {
  std::ostringstream out;
  Logger log({.level = LogLevel::kWarn}, out);
  log.Debug("a");
  log.Info("b");
  EXPECT_EQ(out.str(), "");
  EXPECT_FALSE(log.enabled(LogLevel::kInfo));
  log.Warn("c");
  log.Error("d");
  EXPECT_THAT(out.str(), HasSubstr("warn  c\n"));
  EXPECT_THAT(out.str(), EndsWith("error d\n"));
  Logger off({.level = LogLevel::kOff}, out);
  const std::string before = out.str();
  off.Error("e");
  EXPECT_EQ(out.str(), before);
}

TEST(Logger, ParsesItsLevels) {
  EXPECT_EQ(*ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(*ParseLogLevel("off"), LogLevel::kOff);
  for (const char* bad : {"", "INFO", "verbose"}) {
    const auto level = ParseLogLevel(bad);
    ASSERT_FALSE(level.ok());
    EXPECT_EQ(level.status().field(), "--log-level");
  }
}

}  // namespace
}  // namespace plumb::telemetry
