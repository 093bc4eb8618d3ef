// api/response_format_test.cc
// Every type of response_format, and each member at fault by its path.
#include "api/response_format.h"

#include <gtest/gtest.h>

namespace plumb::api {
namespace {

using text::GrammarKind;

base::Result<std::optional<text::GrammarSpec>> Read(std::string_view json) {
  const auto body = ParseJson("{\"f\":" + std::string(json) + "}");
  CHECK(body.ok()) << body.status().ToString();
  return ReadResponseFormat(*body->Find("f"), "response_format");
}

TEST(ResponseFormat, TextIsNoGrammar) {
  EXPECT_EQ(Read(R"({"type":"text"})").value(), std::nullopt);
}

TEST(ResponseFormat, EveryTypeBecomesItsSpec) {
  struct Case {
    const char* json;
    text::GrammarSpec spec;
  };
  for (const Case& c : {
           Case{R"({"type":"json_object"})", {.kind = GrammarKind::kJsonObject}},
           Case{R"({"type":"json_schema","json_schema":{"name":"n","description":"d",
                    "strict":true,"schema":{"minimum":1.50,"enum":["é\n",null,true,[]]}}})",
                {.kind = GrammarKind::kJsonSchema,
                 .source = R"({"minimum":1.50,"enum":["é\n",null,true,[]]})"}},
           Case{R"({"type":"json_schema","json_schema":{"schema":true}})",
                {.kind = GrammarKind::kJsonSchema, .source = "true"}},
           Case{R"({"type":"regex","regex":"a+"})", {.kind = GrammarKind::kRegex, .source = "a+"}},
           Case{R"({"type":"choice","choice":["a","b"]})",
                {.kind = GrammarKind::kChoice, .choices = {"a", "b"}}},
           Case{R"({"type":"grammar","grammar":"start: x"})",
                {.kind = GrammarKind::kLark, .source = "start: x"}},
           Case{R"({"type":"grammar","syntax":"lark","grammar":"start: x","begin":"<","end":">"})",
                {.kind = GrammarKind::kLark, .source = "start: x", .begin = "<", .end = ">"}},
           Case{R"({"grammar":"root ::= x","syntax":"ebnf","type":"grammar","begin":null})",
                {.kind = GrammarKind::kEbnf, .source = "root ::= x"}},
       }) {
    const auto read = Read(c.json);
    ASSERT_TRUE(read.ok()) << c.json << ": " << read.status().ToString();
    EXPECT_EQ(**read, c.spec) << c.json;
  }
}

TEST(ResponseFormat, FaultsAreNamedByTheirPath) {
  struct Case {
    const char* json;
    const char* field;
  };
  for (const Case& c : {
           Case{R"("text")", ""},
           Case{R"({})", ".type"},
           Case{R"({"type":"xml"})", ".type"},
           Case{R"({"type":null})", ".type"},
           Case{R"({"type":"text","schema":{}})", ""},
           Case{R"({"type":"json_object","schema":{}})", ".schema"},
           Case{R"({"type":"json_schema"})", ".json_schema"},
           Case{R"({"type":"json_schema","json_schema":[]})", ".json_schema"},
           Case{R"({"type":"json_schema","json_schema":{"name":"n"}})", ".json_schema.schema"},
           Case{R"({"type":"json_schema","json_schema":{"schema":"x"}})", ".json_schema.schema"},
           Case{R"({"type":"json_schema","json_schema":{"schema":{},"strict":1}})",
                ".json_schema.strict"},
           Case{R"({"type":"json_schema","json_schema":{"schema":{},"more":1}})",
                ".json_schema.more"},
           Case{R"({"type":"regex"})", ".regex"},
           Case{R"({"type":"regex","regex":""})", ".regex"},
           Case{R"({"type":"regex","regex":["a"]})", ".regex"},
           Case{R"({"type":"choice","choice":[]})", ".choice"},
           Case{R"({"type":"choice","choice":[1]})", ".choice[0]"},
           Case{R"({"type":"choice","choice":"a"})", ".choice"},
           Case{R"({"type":"grammar","grammar":"x","syntax":"bnf"})", ".syntax"},
           Case{R"({"type":"regex","regex":"a","syntax":"lark"})", ".syntax"},
           Case{R"({"type":"regex","regex":"a","end":"b"})", ".end"},
           Case{R"({"type":"regex","regex":"a","begin":""})", ".begin"},
       }) {
    const auto read = Read(c.json);
    ASSERT_FALSE(read.ok()) << c.json;
    EXPECT_EQ(read.status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(read.status().field(), std::string("response_format") + c.field) << c.json;
  }
}

}  // namespace
}  // namespace plumb::api
