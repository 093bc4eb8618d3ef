// api/json_test.cc
// What is JSON and what is not, where a refusal points, and that limits hold.
#include "api/json.h"

#include <gtest/gtest.h>

#include <string>

namespace plumb::api {
namespace {

TEST(ParseJson, KeepsNumbersAsWrittenAndStringsUnescaped) {
  auto root =
      ParseJson(R"( {"a": -1.50e+3, "b": "x\n\u00e9\ud83d\ude00", "c": [true, null, {}]} )");
  ASSERT_TRUE(root.ok()) << root.status().ToString();
  EXPECT_EQ(root->Find("a")->text, "-1.50e+3");
  EXPECT_EQ(root->Find("b")->text, "x\n\xC3\xA9\xF0\x9F\x98\x80");
  const JsonValue& c = *root->Find("c");
  ASSERT_EQ(c.items.size(), 3u);
  EXPECT_TRUE(c.items[0].boolean);
  EXPECT_TRUE(c.items[1].is_null());
  EXPECT_EQ(c.items[2].kind, JsonKind::kObject);
  EXPECT_EQ(root->Find("d"), nullptr);
}

TEST(ParseJson, KeepsDigitsThatNoDoubleHolds) {
  auto root = ParseJson(R"({"a": 123456789012345678901234567890, "b": 1e999})");
  ASSERT_TRUE(root.ok()) << root.status().ToString();
  EXPECT_EQ(root->Find("a")->text, "123456789012345678901234567890");
  EXPECT_EQ(root->Find("b")->text, "1e999");
}

struct Refused {
  const char* text;
  const char* field;
};

TEST(ParseJson, RefusesWhatIsNotJsonAndNamesThePlace) {
  const Refused cases[] = {
      {"", ""},
      {"   ", ""},
      {"null", ""},
      {"[]", ""},
      {"\"x\"", ""},
      {"1", ""},
      {"{", ""},
      {"}", ""},
      {"{}}", ""},
      {"{} {}", ""},
      {"{}x", ""},
      {"{\"a\"}", ""},
      {"{\"a\":}", "a"},
      {"{\"a\":1,}", ""},
      {"{\"a\":1 \"b\":2}", ""},
      {"{a:1}", ""},
      {"{'a':1}", ""},
      {"{\"a\":01}", "a"},
      {"{\"a\":+1}", "a"},
      {"{\"a\":1.}", "a"},
      {"{\"a\":.5}", "a"},
      {"{\"a\":1e}", "a"},
      {"{\"a\":-}", "a"},
      {"{\"a\":0x10}", "a"},
      {"{\"a\":1_000}", "a"},
      {"{\"a\":NaN}", "a"},
      {"{\"a\":Infinity}", "a"},
      {"{\"a\":-Infinity}", "a"},
      {"{\"a\":nul}", "a"},
      {"{\"a\":nullx}", "a"},
      {"{\"a\":True}", "a"},
      {"{\"a\":truex}", "a"},
      {"{\"a\":undefined}", "a"},
      {"{\"a\":[1,2}", "a"},
      {"{\"a\":[1,,2]}", "a[1]"},
      {"{\"a\":[1,{\"b\":tru}]}", "a[1].b"},
      {"{\"a\":\"x}", ""},
      {"{\"a\":\"\\x\"}", "a"},
      {"{\"a\":\"\\u12\"}", "a"},
      {"{\"a\":\"\\ud800\"}", "a"},
      {"{\"a\":\"\n\"}", ""},
      {"{\"a\":\"\xFF\"}", ""},
      {"{\"a\":\"\xC3\"}", ""},
      {"{\"a\":\"\xED\xA0\x80\"}", ""},
      {"{\"a\":\"\xC0\x80\"}", ""},
      {"/* c */ {}", ""},
  };
  for (const Refused& test : cases) {
    auto root = ParseJson(test.text);
    ASSERT_FALSE(root.ok()) << test.text;
    EXPECT_EQ(root.status().code(), base::Code::kInvalidArgument) << test.text;
    EXPECT_EQ(root.status().field(), test.field) << test.text << ": " << root.status().message();
  }
}

TEST(ParseJson, RefusesANameThatStandsTwiceAlsoWhenOneIsEscaped) {
  EXPECT_EQ(ParseJson(R"({"a":1,"b":2,"a":1})").status().field(), "a");
  EXPECT_EQ(ParseJson(R"({"a":1,"\u0061":2})").status().field(), "a");
  EXPECT_EQ(ParseJson(R"({"x":[{"k":1},{"k":1,"k":2}]})").status().field(), "x[1].k");
}

TEST(ParseJson, BoundsDepthNodesAndBytes) {
  const JsonLimits limits{.bytes_max = 1000, .depth_max = 4, .nodes_max = 10};
  EXPECT_TRUE(ParseJson(R"({"a":[[[]]]})", limits).ok());
  EXPECT_FALSE(ParseJson(R"({"a":[[[[]]]]})", limits).ok());
  EXPECT_TRUE(ParseJson(R"({"a":[0,0,0,0,0,0,0,0]})", limits).ok());
  EXPECT_FALSE(ParseJson(R"({"a":[0,0,0,0,0,0,0,0,0]})", limits).ok());
  const auto large = ParseJson("{\"a\":\"" + std::string(1000, 'x') + "\"}", limits);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.status().reason(), "request_too_large");
}

TEST(ParseJson, SurvivesDeepNestingWithoutAnEnd) {
  EXPECT_FALSE(ParseJson("{\"a\":" + std::string(1'000'000, '[')).ok());
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(ParseJson(objects).ok());
}

TEST(MemberPath, CutsHostileNamesAtACharacter) {
  const std::string name(1000, 'n');
  EXPECT_LE(MemberPath("", name).size(), 64u);
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "\xF0\x9F\x98\x80";
  const std::string path = MemberPath("a", "x" + wide);
  EXPECT_EQ((path.size() - 3) % 4, 0u) << path;
}

}  // namespace
}  // namespace plumb::api
