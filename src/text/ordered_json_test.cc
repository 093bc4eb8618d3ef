// text/ordered_json_test.cc
// Printing equals Python's json.dumps(json.loads(x), ensure_ascii=False); limits hold.
#include "text/ordered_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"

namespace plumb::text {
namespace {

std::string Printed(std::string_view json) {
  auto value = OrderedJson::Parse(json);
  if (!value.ok()) return value.status().message();
  std::string out;
  AppendPythonJson(out, *value);
  return out;
}

TEST(OrderedJson, PrintsAsPythonDoes) {
  // Expected texts: CPython 3.11; where its integers have no end, see the last row.
  constexpr std::pair<const char*, const char*> kCases[] = {
      {R"({"b":1,"a":[1,2,{"c":null}],"d":{}})", R"({"b": 1, "a": [1, 2, {"c": null}], "d": {}})"},
      {R"([true,false,[],""])", R"([true, false, [], ""])"},
      {R"("\u00e9\u4e2d\ud83d\ude00\u2028\u007f")", "\"\u00e9\u4e2d\U0001F600\u2028\x7f\""},
      {R"("a\"b\\c\/d\b\f\n\r\t\u0001\u001f")", R"("a\"b\\c/d\b\f\n\r\t\u0001\u001f")"},
      {"[1E-7,-0.0,0.1,1e16,1e15,123456.789e3]",
       "[1e-07, -0.0, 0.1, 1e+16, 1000000000000000.0, "
       "123456789.0]"},
      {"[1e5,1.0,5e-324,1.7976931348623157e308,0.0001,0.00001]",
       "[100000.0, 1.0, 5e-324, 1.7976931348623157e+308, 0.0001, 1e-05]"},
      {"[18446744073709551615,-9223372036854775808]",
       "[18446744073709551615, "
       "-9223372036854775808]"},
      {R"({"x":1,"y":2,"x":3})", R"({"x": 3, "y": 2})"},
      // Beyond 64 bits an integer is a double here, as in deepseek-recipe.
      {"123456789012345678901234567890", "1.2345678901234568e+29"},
  };
  for (const auto& [json, expected] : kCases) EXPECT_EQ(Printed(json), expected) << json;
}

TEST(OrderedJson, RefusesWhatIsNoJson) {
  for (const char* json : {"", "{", "[1,]", "{'a':1}", "nan", "1e400", "1 2", "\"\xff\"", "01"})
    EXPECT_EQ(OrderedJson::Parse(json).status().code(), base::Code::kInvalidArgument) << json;
}

TEST(OrderedJson, HasLimits) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(OrderedJson::Parse(nested(OrderedJson::kDepthMax)).ok());
  EXPECT_FALSE(OrderedJson::Parse(nested(OrderedJson::kDepthMax + 1)).ok());
  EXPECT_FALSE(OrderedJson::Parse(std::string(1 << 20, '[')).ok());
  std::string many = "[1";
  for (size_t i = 0; i < OrderedJson::kValuesMax; ++i) many += ",1";
  EXPECT_FALSE(OrderedJson::Parse(many + "]").ok());
}

TEST(OrderedJson, SetReplacesInPlace) {
  OrderedJson value = OrderedJson::Parse(R"({"a":1,"b":2})").value();
  value.Set("a", OrderedJson::Bool(true));
  value.Set("c", OrderedJson::String("x"));
  std::string out;
  AppendPythonJson(out, value);
  EXPECT_EQ(out, R"({"a": true, "b": 2, "c": "x"})");
}

TEST(OrderedJson, EscapesEveryByteThatMustBeWhereverItStands) {
  base::Rng random(20261130);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint64_t size = random.Below(40); size > 0; --size) {
      const uint64_t kind = random.Below(8);
      if (kind == 0) text += static_cast<char>(random.Below(0x20));
      if (kind == 1) text += random.Below(2) == 0 ? '"' : '\\';
      if (kind == 2) text += "é😀";
      if (kind > 2) text += static_cast<char>(0x20 + random.Below(0x60));
    }
    std::string out;
    AppendPythonString(out, text);
    ASSERT_EQ(out, nlohmann::json(text).dump()) << i;
  }
}

}  // namespace
}  // namespace plumb::text
