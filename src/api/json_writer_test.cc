// api/json_writer_test.cc
// Whatever is written reads back with another reader of JSON, whatever the bytes were.
#include "api/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace plumb::api {
namespace {

std::string Written(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

TEST(JsonWriter, PlacesCommas) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("a").Int(-1).Key("b").BeginArray().Uint(1).Bool(true).Null();
  json.BeginObject()
      .EndObject()
      .BeginArray()
      .EndArray()
      .EndArray()
      .Key("c")
      .String("x")
      .EndObject();
  EXPECT_EQ(out, R"({"a":-1,"b":[1,true,null,{},[]],"c":"x"})");
}

TEST(JsonWriter, EveryByteStringIsValidJsonThatReadsBackWhenItWasUtf8) {
  for (int first = 0; first < 256; ++first) {
    for (const int second : {0x00, 0x22, 0x41, 0x80, 0x9F, 0xA0, 0xBF, 0xC3, 0xF0}) {
      const std::string text{'a', static_cast<char>(first), static_cast<char>(second), 'z'};
      const std::string json = Written(text);
      const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
      ASSERT_TRUE(parsed.is_string()) << json;
      if (first < 0x80 && second < 0x80) {
        EXPECT_EQ(parsed.get<std::string>(), text);
      }
    }
  }
  const std::string wide = "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xED\x95\x9C";
  EXPECT_EQ(nlohmann::json::parse(Written(wide)).get<std::string>(), wide);
  EXPECT_EQ(Written("\xF0\x9F\x98"), "\"\xEF\xBF\xBD\"");
}

TEST(JsonWriter, FloatsReadBackEqualAndNeverAsInfinity) {
  for (const float value : {0.0f, -0.31326166f, 1e-30f, -12345.678f, 3.0f}) {
    std::string out;
    JsonWriter(out).Float(value);
    EXPECT_EQ(nlohmann::json::parse(out).get<float>(), value) << out;
  }
  std::string out;
  JsonWriter(out).Float(-INFINITY);
  EXPECT_EQ(out, "null");
}

}  // namespace
}  // namespace plumb::api
