// text/grammar_schema_test.cc
// JSON Schema keyword by keyword: texts that a schema takes and texts that it does not. The
// JSON-Schema-Test-Suite is run by eval/quality/json_schema_suite.sh.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/grammar_testing.h"

namespace plumb::text {
namespace {

struct Case {
  const char* schema;
  std::vector<const char*> good;
  std::vector<const char*> bad;
};

class GrammarSchemaTest : public ::testing::Test {
 protected:
  void Check(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      auto grammar = compiler_.Compile({.kind = GrammarKind::kJsonSchema, .source = c.schema});
      ASSERT_TRUE(grammar.ok()) << c.schema << ": " << grammar.status().ToString();
      for (const char* text : c.good)
        EXPECT_TRUE(testing::Takes(**grammar, *tokenizer_, text)) << text << " by " << c.schema;
      for (const char* text : c.bad)
        EXPECT_FALSE(testing::Takes(**grammar, *tokenizer_, text)) << text << " by " << c.schema;
    }
  }
  void ExpectRefused(const char* schema, const char* says) {
    auto grammar = compiler_.Compile({.kind = GrammarKind::kJsonSchema, .source = schema});
    ASSERT_FALSE(grammar.ok()) << schema;
    EXPECT_THAT(grammar.status().message(), ::testing::HasSubstr(says)) << schema;
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler_{*tokenizer_};
};

TEST_F(GrammarSchemaTest, NumbersAndTextsKeepTheirBounds) {
  Check({
      {R"({"type":"integer","minimum":-5,"exclusiveMaximum":120})",
       {"-5", "0", "119"},
       {"-6", "120", "1.5", "01", "\"1\""}},
      {R"({"type":"number","exclusiveMinimum":0,"maximum":2.5})",
       {"0.1", "2.5", "1"},
       {"0", "2.51", "-1", "0.0"}},
      {R"({"type":"number","minimum":-0.5,"maximum":0.5})", {"0", "-0.5", "0.25"}, {"0.51", "1"}},
      {R"({"type":"number","exclusiveMinimum":5,"maximum":6})", {"5.1", "6"}, {"5", "5.0"}},
      {R"({"type":"integer","multipleOf":7})", {"0", "14", "-21"}, {"1", "15"}},
      {R"({"type":"number","multipleOf":0.25})",
       {"5.5", "5.50", "5.25", "5", "-0.75", "0"},
       {"5.1", "5.125", "0.3", "-0.7"}},
      {R"({"type":"number","multipleOf":1.5,"minimum":2})",
       {"3", "4.5", "13.5"},
       {"1.5", "2", "4", "3.5"}},
      {R"({"multipleOf":0.125,"type":["number","null"],"maximum":1})",
       {"null", "0.5", "0.125", "-2.25", "1"},
       {"0.1", "1.125", "\"0.5\""}},
      {R"({"allOf":[{"multipleOf":0.25},{"multipleOf":0.2}],"type":"number"})",
       {"1", "-2", "30"},
       {"0.5", "0.2", "1.5"}},
      {R"({"type":"integer","multipleOf":2.5})", {"5", "-10", "0"}, {"2", "3"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("日本é")", R"("a\n")"},
       {R"("a")", R"("abcd")", "12"}},
      {R"({"type":"string","pattern":"^[a-z]+\\d$"})", {R"("abc1")"}, {R"("abc")", R"("Abc1")"}},
      {R"({"type":"string","pattern":"ab"})", {R"("xaby")"}, {R"("a b")"}},
      {R"({"type":["null","boolean"]})", {"null", "true"}, {"0", "\"\""}},
      {R"({"enum":["ab",12,null,[1,{"a":2}]]})",
       {"\"ab\"", "12", "null", R"([1,{"a":2}])"},
       {"\"abc\"", "1", "[1]"}},
      {R"({"const":12.0})", {"12"}, {"13", "1"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-29")"},
       {R"("2023-02-29")", R"("24-01-01")"}},
      {R"({"type":"string","format":"uuid"})",
       {R"("01234567-89ab-cdef-0123-456789abcdef")"},
       {R"("01234567")"}},
  });
}

// llguidance would take the excluded bound itself.
TEST_F(GrammarSchemaTest, RefusesExcludedWholeBoundsBesideNearOnes) {
  for (const char* schema : {
           R"({"type":"number","exclusiveMinimum":0,"maximum":0.5})",
           R"({"type":"number","exclusiveMinimum":5,"exclusiveMaximum":5.5})",
           R"({"type":"number","minimum":-0.5,"exclusiveMaximum":0})",
           R"({"type":"number","minimum":-5.5,"exclusiveMaximum":-5})",
           R"({"allOf":[{"type":"number","exclusiveMinimum":0},{"maximum":0.75}]})",
           R"({"type":"number","not":{"maximum":0},"maximum":0.75})",
       }) {
    ExpectRefused(schema, "cannot be enforced beside another bound");
  }
}

TEST_F(GrammarSchemaTest, ObjectsAndArraysHaveTheirMembers) {
  Check({
      {R"({"type":"object","required":["a"]})",
       {R"({"a":1})", R"({"a":null,"b":2})"},
       {"{}", "[]"}},
      {R"({"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":false})",
       {"{}", R"({"a":null})"},
       {R"({"a":1})", R"({"b":null})", R"({"\u0061":1})"}},
      {R"({"type":"object","properties":{"a":{"type":"null"}},
           "additionalProperties":{"type":"boolean"}})",
       {R"({"a":null,"b":true})"},
       {R"({"a":true})", R"({"b":null})"}},
      {R"({"type":"object","patternProperties":{"^x":{"type":"integer"}},
           "additionalProperties":false})",
       {R"({"x1":1,"x":2})"},
       {R"({"y":1})", R"({"x":"a"})"}},
      {R"({"type":"object","maxProperties":1})", {"{}", R"({"a":1})"}, {R"({"a":1,"b":2})"}},
      {R"({"type":"object","minProperties":1})", {R"({"a":1})"}, {"{}"}},
      {R"({"type":"array","prefixItems":[{"type":"null"}],"items":{"type":"integer"}})",
       {"[]", "[null]", "[null,1,2]"},
       {"[1]", "[null,null]"}},
      {R"({"type":"array","minItems":1,"maxItems":2})", {"[1]", "[1,{}]"}, {"[]", "[1,2,3]"}},
      {R"({"type":"array","items":[{"type":"null"}],"additionalItems":false})",
       {"[]", "[null]"},
       {"[1]", "[null,null]"}},
      {R"({"type":"array","contains":true,"maxContains":2})", {"[1]", "[1,2]"}, {"[]", "[1,2,3]"}},
      {R"({"propertyNames":{"maxLength":2},"type":"object"})", {R"({"ab":1})"}, {R"({"abc":1})"}},
  });
}

TEST_F(GrammarSchemaTest, CombinationsHoldTogether) {
  Check({
      {R"({"allOf":[{"type":"integer"},{"minimum":3},{"maximum":5}]})", {"3", "5"}, {"2", "6"}},
      {R"({"anyOf":[{"type":"null"},{"type":"string","maxLength":1}]})",
       {"null", "\"a\""},
       {"1", "\"ab\""}},
      {R"({"oneOf":[{"type":"null"},{"type":"boolean"}]})", {"null", "true"}, {"1"}},
      {R"({"not":{"type":["string","number","object"]}})", {"null", "[]"}, {"1", "\"\"", "{}"}},
      {R"({"type":"object","not":{"required":["a"]}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}},
      {R"({"type":"integer","not":{"minimum":5}})", {"4", "-1"}, {"5"}},
      {R"({"type":"object","properties":{"k":{"type":"boolean"},"v":{}},
           "if":{"properties":{"k":{"const":true}},"required":["k"]},
           "then":{"required":["v"]},"else":{"properties":{"v":false}},
           "additionalProperties":false})",
       {R"({"k":true,"v":1})", R"({"k":false})", "{}"},
       {R"({"k":true})", R"({"k":false,"v":1})", R"({"v":1})"}},
      {R"({"type":"object","dependentRequired":{"a":["b"]},"properties":{"a":{},"b":{}}})",
       {R"({"a":1,"b":2})", R"({"b":2})", "{}"},
       {R"({"a":1})"}},
      {R"({"type":"object","properties":{"a":{"type":"null"}},"unevaluatedProperties":false})",
       {R"({"a":null})", "{}"},
       {R"({"b":1})"}},
      {R"({"type":"array","items":[{"type":"null"}],"unevaluatedItems":false})",
       {"[]", "[null]"},
       {"[null,null]", "[1]"}},
      {R"({"type":"object","allOf":[{"properties":{"a":{"type":"null"}}}],
           "properties":{"b":{}},"unevaluatedProperties":false})",
       {R"({"a":null,"b":1})"},
       {R"({"c":1})", R"({"a":1})"}},
  });
}

TEST_F(GrammarSchemaTest, ReferencesLeadWithinTheSchema) {
  Check({
      {R"({"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"null"}}})", {"null"}, {"1"}},
      {R"({"$defs":{"n":{"$anchor":"here","type":"null"}},
           "items":{"$ref":"#here"},"type":"array"})",
       {"[null]"},
       {"[1]"}},
      {R"({"$id":"http://x.y/a","$ref":"b","$defs":{"b":{"$id":"b","type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"type":"object","properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#"}]}},
           "required":["next"],"additionalProperties":false})",
       {R"({"next":{"next":null}})"},
       {R"({"next":{}})", "{}"}},
  });
}

TEST_F(GrammarSchemaTest, WhatCannotBeEnforcedIsNamed) {
  ExpectRefused(R"({"contains":{"type":"null"}})", "\"contains\" at the root");
  ExpectRefused(R"({"items":{"uniqueItems":true}})", "\"uniqueItems\" at /items");
  ExpectRefused(R"({"minProperties":3})", "\"minProperties\"");
  ExpectRefused(R"({"$ref":"other.json"})", "\"$ref\" at the root");
  ExpectRefused(R"({"$dynamicRef":"#x"})", "\"$dynamicRef\"");
  ExpectRefused(R"({"not":{"pattern":"a"}})", "\"pattern\" at /not");
  ExpectRefused(R"({"format":"date"})", "\"format\"");
  ExpectRefused(R"({"type":"string","format":"iri"})", "\"format\"");
  ExpectRefused(R"x({"type":"string","pattern":"(?!a)"})x", "\"pattern\"");
  ExpectRefused(R"({"const":9007199254740993})", "\"const\"");
  ExpectRefused(R"({"enum":["a\u0000"]})", "\"enum\"");
  ExpectRefused(R"({"x-guidance":{"lenient":true}})", "\"x-guidance\"");
  ExpectRefused(R"({"unevaluatedProperties":false,"anyOf":[{"properties":{"a":{}}}]})",
                "\"unevaluatedProperties\"");
  ExpectRefused(R"({"type":"object","properties":{"a":{},"b":{}},"maxProperties":1})",
                "\"maxProperties\" at the root");
  ExpectRefused(R"({"$schema":"http://example.com/mine"})", "\"$schema\"");
  ExpectRefused(R"({"$schema":"http://json-schema.org/draft-07/schema#","items":
                    {"$ref":"#","maxItems":1}})",
                "\"$ref\" at /items");
}

TEST_F(GrammarSchemaTest, ValuesOfTheWrongKindAreRefusedWhereverTheyStand) {
  ExpectRefused(R"({"type":5})", "\"type\" at the root of the schema is wrong");
  ExpectRefused(R"({"not":{"type":"strin"}})", "\"type\" at /not of");
  ExpectRefused(R"({"if":{"minLength":-1},"then":true})", "\"minLength\" at /if of");
  ExpectRefused(R"({"then":{"maximum":"5"}})", "\"maximum\" at /then of");
  ExpectRefused(R"({"enum":{}})", "\"enum\" at the root");
  ExpectRefused(R"({"items":3})", "\"items\" at /items of");
  ExpectRefused(R"({"items":[true,3]})", "\"items\" at /items/1 of");
  ExpectRefused(R"({"properties":{"a/b":"x"}})", "\"properties\" at /properties/a~1b of");
  ExpectRefused(R"({"properties":{"a":{"required":["b","c","b"]}}})",
                "\"required\" at /properties/a of the schema is wrong: \"b\" stands in it twice");
  ExpectRefused(R"({"required":"a"})", "\"required\" at the root");
  ExpectRefused(R"({"minItems":1.5})", "\"minItems\" at the root");
  ExpectRefused(R"({"uniqueItems":"true"})", "\"uniqueItems\" at the root");
  ExpectRefused(R"({"additionalProperties":"false"})",
                "\"additionalProperties\" at /additionalProperties of");
  ExpectRefused(R"({"multipleOf":0})", "\"multipleOf\" at the root");
  ExpectRefused(R"({"allOf":{}})", "\"allOf\" at the root");
  ExpectRefused(R"({"anyOf":[]})", "\"anyOf\" at the root");
  ExpectRefused(R"({"$defs":{"unused":{"type":"any"}}})", "\"type\" at /$defs/unused of");
  ExpectRefused(R"({"$ref":"#/$defs/nowhere"})", "\"$ref\" at the root");
  ExpectRefused(R"({"$id":5})", "\"$id\" at the root");
  for (const char* pattern : {"(", ")", "a**", "*a", "[b-a]", "a{2,1}", "[a", "\\\\"}) {
    const std::string schema = fmt::format(R"({{"type":"string","pattern":"{}"}})", pattern);
    ExpectRefused(schema.c_str(), "\"pattern\" at the root");
    const std::string names = fmt::format(R"({{"patternProperties":{{"{}":true}}}})", pattern);
    ExpectRefused(names.c_str(), "\"patternProperties\" at the root");
  }
  ExpectRefused(R"({"multipleOf":0.123456789})", "\"multipleOf\" at the root");
}

TEST_F(GrammarSchemaTest, WhatNeverEndsIsRefusedOrNeverBegun) {
  for (const char* schema : {
           R"({"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}})",
           R"({"type":"array","items":{"$ref":"#"},"minItems":1})",
           R"({"allOf":[{"$ref":"#"}]})",
           R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})",
       }) {
    ExpectRefused(schema, "\"$ref\" at ");
  }
  ExpectRefused(R"({"type":"integer","minimum":1,"maximum":5,"multipleOf":7})", "allows nothing");
  ExpectRefused(R"({"type":"object","properties":{"n":{"type":"integer","minimum":1.2,
                    "maximum":1.8}},"required":["n"]})",
                "allows nothing");
  Check({
      {R"({"type":"object","properties":{"n":{"type":"number","minimum":0.3,"maximum":0.4,
           "multipleOf":0.25},"m":{"minimum":1,"maximum":5,"multipleOf":7}},
           "additionalProperties":false})",
       {"{}", R"({"m":null})"},
       {R"({"n":0.25})", R"({"m":7})"}},
      {R"({"type":"object","properties":{"a":{"$ref":"#/$defs/a"},"b":{"type":"null"}},
           "$defs":{"a":{"type":"object","required":["x"],"properties":{"x":{"$ref":"#/$defs/a"}}}},
           "additionalProperties":false})",
       {"{}", R"({"b":null})"},
       {R"({"a":{"x":{}}})"}},
      {R"({"anyOf":[{"type":"array","minItems":1,"items":{"$ref":"#/$defs/a"}},{"type":"null"}],
           "$defs":{"a":{"type":"object","required":["x"],
           "properties":{"x":{"$ref":"#/$defs/a"}}}}})",
       {"null"},
       {"[]", "[{}]"}},
  });
}

TEST_F(GrammarSchemaTest, AnnotationsPass) {
  Check({{R"({"title":"t","description":"d","default":1,"examples":[1],"deprecated":true,
              "readOnly":true,"$comment":"c","x-order":3,"type":"null",
              "$schema":"https://json-schema.org/draft/2020-12/schema"})",
          {"null"},
          {"1"}}});
}

}  // namespace
}  // namespace plumb::text
