// api/retention_fields_test.cc
// cache_control and prompt_cache_retention: what they mean, what is refused by which field, and
// which marks of several count.
#include "api/retention_fields.h"

#include <gtest/gtest.h>

#include <string>

namespace plumb::api {
namespace {

// A member's value: bodies are objects.
JsonValue Json(std::string_view text) {
  return *ParseJson("{\"v\":" + std::string(text) + "}").value().Find("v");
}

TEST(RetentionFields, ReadsCacheControl) {
  const auto read = [](std::string_view text) { return ReadCacheControl(Json(text), "c").value(); };
  EXPECT_FALSE(read("null"));
  EXPECT_EQ(read(R"({"type": "ephemeral"})"), kFiveMinutes);
  EXPECT_EQ(read(R"({"type": "ephemeral", "ttl": null})"), kFiveMinutes);
  EXPECT_EQ(read(R"({"type": "ephemeral", "ttl": "5m"})"), kFiveMinutes);
  EXPECT_EQ(read(R"({"ttl": "1h", "type": "ephemeral", "scope": "global"})"), kOneHour);
}

TEST(RetentionFields, RefusesWhatIsNoCacheControl) {
  struct Case {
    const char* json;
    const char* field;
  };
  for (const Case& c :
       {Case{R"("ephemeral")", "c"}, Case{"[]", "c"}, Case{"{}", "c.type"},
        Case{R"({"type": null})", "c.type"}, Case{R"({"type": 1})", "c.type"},
        Case{R"({"type": "persistent"})", "c.type"}, Case{R"({"type": "Ephemeral"})", "c.type"},
        Case{R"({"type": "ephemeral", "ttl": "24h"})", "c.ttl"},
        Case{R"({"type": "ephemeral", "ttl": "1H"})", "c.ttl"},
        Case{R"({"type": "ephemeral", "ttl": 300})", "c.ttl"},
        Case{R"({"type": "ephemeral", "scope": 1})", "c.scope"},
        Case{R"({"type": "ephemeral", "max_age": 1})", "c.max_age"}}) {
    const auto read = ReadCacheControl(Json(c.json), "c");
    ASSERT_FALSE(read.ok()) << c.json;
    EXPECT_EQ(read.status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(read.status().field(), c.field) << c.json;
  }
}

TEST(RetentionFields, ReadsPromptRetention) {
  const auto read = [](std::string_view text) {
    return ReadPromptRetention(Json(text), "prompt_cache_retention");
  };
  EXPECT_FALSE(read("null").value());
  EXPECT_EQ(read(R"("in_memory")").value()->time, kFiveMinutes);
  EXPECT_EQ(read(R"("in-memory")").value()->time, kFiveMinutes);
  EXPECT_EQ(read(R"("24h")").value()->time, kOneDay);
  EXPECT_FALSE(read(R"("24h")").value()->place) << "all of the prompt";
  for (const char* bad : {R"("")", R"("1h")", R"("24H")", "24", "true", "{}", R"(["24h"])"}) {
    EXPECT_EQ(read(bad).status().field(), "prompt_cache_retention") << bad;
  }
}

TEST(RetentionFields, AMarkCountsUnlessALaterOneKeepsAsLong) {
  const auto mark = [](size_t message, base::Duration time) {
    return CacheMark{text::ConversationPlace{.message = message, .bytes = 0}, time};
  };
  const auto messages = [](const std::vector<CacheMark>& marks) {
    std::vector<size_t> out;
    for (const CacheMark& one : LastingMarks(marks)) out.push_back(one.place->message);
    return out;
  };
  using List = std::vector<size_t>;
  EXPECT_EQ(messages({}), List());
  EXPECT_EQ(messages({mark(1, kFiveMinutes), mark(2, kFiveMinutes)}), List({2}));
  EXPECT_EQ(messages({mark(1, kOneHour), mark(2, kFiveMinutes)}), List({1, 2}));
  EXPECT_EQ(messages({mark(1, kFiveMinutes), mark(2, kOneHour)}), List({2}));
  EXPECT_EQ(messages({mark(0, kOneHour), mark(1, kFiveMinutes), mark(2, kOneHour),
                      mark(3, kFiveMinutes)}),
            List({2, 3}));
}

}  // namespace
}  // namespace plumb::api
