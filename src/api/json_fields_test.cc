// api/json_fields_test.cc
// A field of a few words: which one it is, and what is said of any other value.
#include "api/json_fields.h"

#include <gtest/gtest.h>

#include <string>

namespace plumb::api {
namespace {

base::Result<std::string_view> ReadFrom(const std::string& json) {
  const auto root = ParseJson("{\"ttl\": " + json + "}");
  EXPECT_TRUE(root.ok()) << json;
  return ReadWord(*root->Find("ttl"), "a.ttl", {"5m", "1h", "1d"});
}

TEST(ReadWord, GivesTheWordOrNothingForNull) {
  EXPECT_EQ(ReadFrom("\"1h\"").value(), "1h");
  EXPECT_EQ(ReadFrom("null").value(), "");
}

TEST(ReadWord, RefusesEverythingElseAndSaysWhatItMayBe) {
  for (const char* json : {"\"\"", "\"1H\"", "\"1h \"", "\"5m\\u0000\"", "\"\\ud83d\\ude00\""}) {
    const auto word = ReadFrom(json);
    ASSERT_FALSE(word.ok()) << json;
    EXPECT_EQ(word.status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(word.status().field(), "a.ttl");
    EXPECT_EQ(word.status().message(), R"(a.ttl must be "5m", "1h" or "1d")");
  }
  for (const char* json : {"1", "true", "[\"1h\"]", "{\"1h\": 1}"}) {
    const auto word = ReadFrom(json);
    ASSERT_FALSE(word.ok()) << json;
    EXPECT_EQ(word.status().field(), "a.ttl");
  }
}

}  // namespace
}  // namespace plumb::api
