// tests/wire/talk_test.cc
// What an expectation of a talk lets pass and what not: a transcript that nothing can break shows
// nothing.
#include "talk.h"

#include <gtest/gtest.h>

namespace plumb::wire {
namespace {

using nlohmann::json;

std::string Why(std::string_view expected, std::string_view got, Members members) {
  return Mismatch(json::parse(expected), json::parse(got), members).value_or("");
}

constexpr std::string_view kGot =
    R"({"id":"a","n":3,"empty":"","list":[{"x":1,"y":null}],"deep":{"z":2.5}})";

TEST(Mismatch, OfSomeMembersLetsOthersPass) {
  for (const char* expected :
       {R"({})", R"({"n":3})", R"({"list":[{"x":1}]})", R"({"deep":{}})", R"({"m":"<absent>"})",
        R"({"id":"<string>","n":"<integer>","empty":"<any>"})"})
    EXPECT_EQ(Why(expected, kGot, Members::kSome), "") << expected;
}

TEST(Mismatch, OfAllMembersLetsNoOtherPassAtAnyDepth) {
  const json got = json::parse(kGot);
  EXPECT_EQ(Why(kGot, kGot, Members::kAll), "");
  for (const auto& [name, value] : got.items()) {
    json expected = got;
    expected.erase(name);
    EXPECT_EQ(Why(expected.dump(), kGot, Members::kAll),
              "." + name + " is not expected: " + value.dump());
  }
  json expected = got;
  expected["list"][0].erase("y");
  EXPECT_EQ(Why(expected.dump(), kGot, Members::kAll), ".list[0].y is not expected: null");
  expected = got;
  expected["more"] = nullptr;
  EXPECT_EQ(Why(expected.dump(), kGot, Members::kAll), ".more is missing");
}

TEST(Mismatch, SaysWhereAndHow) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"n":4})", ".n is 3 instead of 4"},
      {R"({"m":1})", ".m is missing"},
      {R"({"n":"<absent>"})", ".n should not be there: 3"},
      {R"({"n":"<string>"})", R"(.n is 3 instead of "<string>")"},
      {R"({"empty":"<string>"})", R"(.empty is "" instead of "<string>")"},
      {R"({"deep":{"z":"<integer>"}})", R"(.deep.z is 2.5 instead of "<integer>")"},
      {R"({"list":[]})", R"(.list has 1 entries instead of 0: [{"x":1,"y":null}])"},
      {R"({"list":[{"x":2}]})", ".list[0].x is 1 instead of 2"},
      {R"({"list":{}})", R"(.list is [{"x":1,"y":null}] instead of {})"},
  };
  for (const auto& [expected, why] : cases)
    EXPECT_EQ(Why(expected, kGot, Members::kSome), why) << expected;
}

TEST(ReadTalk, KeepsWordsRestsAndContinuations) {
  const auto lines = ReadTalk("# what\n\njson= {\"a\":\n   1}\ndata\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].number, 3);
  EXPECT_EQ(lines[0].word, "json=");
  EXPECT_EQ(lines[0].rest, "{\"a\":\n 1}");
  EXPECT_EQ(lines[1].word, "data");
  EXPECT_EQ(lines[1].rest, "");
}

}  // namespace
}  // namespace plumb::wire
