// text/grammar_test.cc
// Grammars token by token: what masks allow is what Accept takes; taking back, looking ahead and
// other answers change nothing; every kind of source, and how each is refused.
#include "text/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "base/thread.h"
#include "text/grammar_testing.h"

namespace plumb::text {
namespace {

using testing::Allows;
using testing::ByteTokens;
using ::testing::HasSubstr;
using testing::MaskOf;
using testing::Takes;

class GrammarTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Grammar> Compile(const GrammarSpec& spec) {
    auto grammar = compiler_.Compile(spec);
    EXPECT_TRUE(grammar.ok()) << grammar.status().ToString() << " for " << spec.source;
    return grammar.ok() ? *grammar : nullptr;
  }
  base::Status Refusal(const GrammarSpec& spec) {
    auto grammar = compiler_.Compile(spec);
    EXPECT_FALSE(grammar.ok()) << spec.source;
    return grammar.status();
  }
  bool TakesText(const GrammarSpec& spec, std::string_view text) {
    return Takes(*Compile(spec), *tokenizer_, text);
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler_{*tokenizer_};
};

TEST_F(GrammarTest, AChoiceIsOneOfTheList) {
  const GrammarSpec spec{.kind = GrammarKind::kChoice,
                         .choices = {"ab", "abc", "日本", "say \"x\""}};
  for (const char* good : {"ab", "abc", "日本", "say \"x\""})
    EXPECT_TRUE(TakesText(spec, good)) << good;
  for (const char* bad : {"", "a", "abcd", "日", "ab ", "say"})
    EXPECT_FALSE(TakesText(spec, bad)) << bad;
}

TEST_F(GrammarTest, ARegexIsTheWholeAnswer) {
  const GrammarSpec spec{.kind = GrammarKind::kRegex, .source = R"(\d{3}-(ab|the)+\/?)"};
  for (const char* good : {"123-ab", "000-theab/"}) EXPECT_TRUE(TakesText(spec, good)) << good;
  for (const char* bad : {"12-ab", "123-", "x123-ab", "123-ab//", "१२३-ab"})
    EXPECT_FALSE(TakesText(spec, bad)) << bad;
}

TEST_F(GrammarTest, LarkIsTakenWithoutItsWaysOut) {
  const GrammarSpec spec{.kind = GrammarKind::kLark,
                         .source = "start: \"[\" item (\",\" item)* \"]\"\nitem: /[0-9]+/ | start"};
  EXPECT_TRUE(TakesText(spec, "[1,[12,3],[[4]]]"));
  EXPECT_FALSE(TakesText(spec, "[1,[12,3]"));
  EXPECT_FALSE(TakesText(spec, "[]"));
  for (const char* source : {"start: %json {\"type\": \"object\"}", "start: <|im_end|>",
                             "start: @x", "start: %lark { }"}) {
    EXPECT_EQ(Refusal({.kind = GrammarKind::kLark, .source = source}).reason(),
              "grammar_unsupported");
  }
}

TEST_F(GrammarTest, EbnfIsReadByCharacters) {
  const GrammarSpec spec{.kind = GrammarKind::kEbnf,
                         .source =
                             "root ::= term ([-+] term)* # sums\n"
                             "term ::= [0-9]+ | \"(\" root \")\""};
  for (const char* good : {"1", "12+3", "(1-(123))+4"}) EXPECT_TRUE(TakesText(spec, good)) << good;
  for (const char* bad : {"", "+1", "(1", "1+", "1 + 2"}) EXPECT_FALSE(TakesText(spec, bad)) << bad;
  // Without recursion, the shorter word is not lost to the longer.
  const GrammarSpec flat{.kind = GrammarKind::kEbnf,
                         .source = "root ::= (\"a\" | \"ab\") \"b\"? [0-9]{1,2}"};
  for (const char* good : {"a1", "ab1", "abb12"}) EXPECT_TRUE(TakesText(flat, good)) << good;
  EXPECT_FALSE(TakesText(flat, "abbb1"));
}

TEST_F(GrammarTest, EbnfTakesTheGrammarThatEverybodyHas) {
  const GrammarSpec spec{.kind = GrammarKind::kEbnf, .source = R"gbnf(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf"};
  for (const char* good :
       {"{}", R"({"a": [1, -2.5e+3, {"b":null}], "é": "x\"\u00e9"})", "{\n  \"a\":true}"})
    EXPECT_TRUE(TakesText(spec, good)) << good;
  for (const char* bad : {"[]", "{\"a\":01}", "{\"a\":  1}", "{\"a\":1,}", "{a:1}"})
    EXPECT_FALSE(TakesText(spec, bad)) << bad;
}

TEST_F(GrammarTest, AnyJsonObjectWithBoundedWhiteSpace) {
  const GrammarSpec spec{.kind = GrammarKind::kJsonObject};
  for (const std::string good : {"{}", R"({"a":[1,{"b":null}],"é":"日本\n"})",
                                 "{\"a\": true, \"b\": -1.5e+3}", "{\n    \"a\": 1\n}"})
    EXPECT_TRUE(TakesText(spec, good)) << good;
  for (const std::string bad : {"[]", "{", "{}}", "{  }", "{\"a\":  1}", "{\n\n}", "{\"a\"\t:1}",
                                "{'a':1}", "{\"a\":01}", "{\"a\":1,}", R"({"\u0061":1})", "{} "})
    EXPECT_FALSE(TakesText(spec, bad)) << bad;
  EXPECT_TRUE(TakesText(spec, "{\n" + std::string(32, ' ') + "}"));
  EXPECT_FALSE(TakesText(spec, "{\n" + std::string(33, ' ') + "}"));
}

// A schema with a bit of everything, and a text that it takes.
const GrammarSpec kPerson{
    .kind = GrammarKind::kJsonSchema,
    .source = R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},
        "age":{"type":"integer","minimum":0,"maximum":150},
        "tags":{"type":"array","items":{"enum":["ab","abc","the"]},"maxItems":3},
        "more":{"$ref":"#"}},"required":["name"],"additionalProperties":false})"};
constexpr std::string_view kPersonText =
    R"({"name": "日本 the\n", "age": 12, "tags": ["ab", "abc"], "more": {"name":"é"}})";

TEST_F(GrammarTest, TheMaskIsWhatAcceptTakes) {
  const auto grammar = Compile(kPerson);
  const auto state = grammar->NewState();
  for (const TokenId next : testing::LongestTokens(*tokenizer_, kPersonText)) {
    const std::vector<uint32_t> mask = MaskOf(*state, *tokenizer_);
    for (uint32_t id = 0; id < tokenizer_->size(); ++id) {
      const auto fresh = grammar->NewState();  // without a mask to look into
      const bool accepted = state->Accept(TokenId{id}).ok();
      ASSERT_EQ(accepted, Allows(mask, TokenId{id})) << tokenizer_->TokenName(TokenId{id});
      if (accepted) state->Rollback(1);
    }
    ASSERT_TRUE(state->Accept(next).ok());
  }
  EXPECT_TRUE(state->Complete());
}

TEST_F(GrammarTest, AStateIsAFunctionOfItsTokens) {
  const auto grammar = Compile(kPerson);
  const std::vector<TokenId> tokens = testing::LongestTokens(*tokenizer_, kPersonText);
  base::Rng rng(7);
  const auto wild = grammar->NewState();
  uint32_t at = 0;
  for (int round = 0; round < 300; ++round) {
    const uint32_t to = static_cast<uint32_t>(rng.Below(tokens.size() + 1));
    if (to < at) wild->Rollback(at - to);
    for (; at < to; ++at) ASSERT_TRUE(wild->Accept(tokens[at]).ok());
    at = to;
    if (rng.Below(2) == 0) {
      std::vector<TokenId> guess(rng.Below(6), TokenId{static_cast<uint32_t>(rng.Below(300))});
      wild->CountAllowed(guess);
    }
    EXPECT_EQ(wild->CountAllowed(std::span(tokens).subspan(at)), tokens.size() - at);
    const auto fresh = grammar->NewState();
    for (uint32_t i = 0; i < at; ++i) ASSERT_TRUE(fresh->Accept(tokens[i]).ok());
    ASSERT_EQ(MaskOf(*wild, *tokenizer_), MaskOf(*fresh, *tokenizer_)) << at;
    ASSERT_EQ(wild->Complete(), fresh->Complete());
  }
}

TEST_F(GrammarTest, AfterTheEndThereIsNothing) {
  const auto state = Compile({.kind = GrammarKind::kChoice, .choices = {"ab"}})->NewState();
  const TokenId end = tokenizer_->end_tokens()[0];
  EXPECT_EQ(state->Accept(end).code(), base::Code::kInvalidArgument);
  for (const TokenId token : ByteTokens("ab")) ASSERT_TRUE(state->Accept(token).ok());
  EXPECT_TRUE(state->Complete());
  ASSERT_TRUE(state->Accept(end).ok());
  EXPECT_FALSE(state->Accept(end).ok());
  EXPECT_TRUE(state->Complete());
  EXPECT_TRUE(Allows(MaskOf(*state, *tokenizer_), end));
  state->Rollback(2);
  EXPECT_FALSE(state->Complete());
  EXPECT_TRUE(Allows(MaskOf(*state, *tokenizer_), TokenId{'b'}));
}

TEST_F(GrammarTest, ForcedIsWhatOneTokenAloneCanSay) {
  const auto state =
      Compile({.kind = GrammarKind::kChoice, .choices = {"xyz!", "xyz?"}})->NewState();
  std::vector<TokenId> forced;
  state->AppendForced(8, forced);
  EXPECT_EQ(forced, ByteTokens("xyz"));
  forced.clear();
  state->AppendForced(2, forced);
  EXPECT_EQ(forced, ByteTokens("xy"));
  forced.clear();
  const auto other = Compile({.kind = GrammarKind::kChoice, .choices = {"abc"}})->NewState();
  other->AppendForced(8, forced);
  EXPECT_TRUE(forced.empty()) << "a, ab and abc are three ways to begin";
}

TEST_F(GrammarTest, IdsThatTheTokenizerHasNotAreNeverAllowed) {
  const auto state = Compile({.kind = GrammarKind::kJsonObject})->NewState();
  std::vector<uint32_t> mask(64, ~0u);
  ASSERT_TRUE(state->FillMask(mask).ok());
  for (uint32_t id = tokenizer_->size(); id < mask.size() * 32; ++id)
    EXPECT_FALSE(Allows(mask, TokenId{id})) << id;
  EXPECT_FALSE(state->Accept(TokenId{tokenizer_->size()}).ok());
  EXPECT_FALSE(state->Accept(TokenId{UINT32_MAX}).ok());
  EXPECT_FALSE(state->Accept(testing::ControlToken(*tokenizer_, "<|tool|>")).ok());
}

// They share caches, and nothing else.
TEST_F(GrammarTest, AnswersOfAGrammarDoNotDisturbEachOther) {
  const auto grammar = Compile(kPerson);
  const std::vector<TokenId> longest = testing::LongestTokens(*tokenizer_, kPersonText);
  std::vector<std::vector<uint32_t>> masks;
  const auto alone = grammar->NewState();
  for (const TokenId token : longest) {
    masks.push_back(MaskOf(*alone, *tokenizer_));
    ASSERT_TRUE(alone->Accept(token).ok());
  }
  std::vector<int> same(4, 0);
  std::vector<base::Thread> threads;
  for (int& count : same) {
    threads.emplace_back("answer", [&] {
      for (int round = 0; round < 5; ++round) {
        const auto state = grammar->NewState();
        for (size_t i = 0; i < longest.size(); ++i) {
          count += MaskOf(*state, *tokenizer_) == masks[i] ? 1 : 0;
          CHECK(state->Accept(longest[i]).ok());
        }
      }
    });
  }
  for (base::Thread& thread : threads) thread.Join();
  EXPECT_EQ(same, std::vector<int>(4, 5 * static_cast<int>(longest.size())));
}

// Whatever the model says, what comes out is JSON that the schema takes.
TEST_F(GrammarTest, RandomAnswersHold) {
  const auto grammar = Compile(kPerson);
  base::Rng rng(11);
  int ended = 0;
  for (int round = 0; round < 60; ++round) {
    const auto state = grammar->NewState();
    std::string text;
    for (int step = 0; step < 400 && !state->Complete(); ++step) {
      const std::vector<uint32_t> mask = MaskOf(*state, *tokenizer_);
      std::vector<TokenId> allowed;
      for (uint32_t id = 0; id < tokenizer_->size(); ++id)
        if (Allows(mask, TokenId{id})) allowed.push_back(TokenId{id});
      ASSERT_FALSE(allowed.empty());
      const TokenId token = allowed[rng.Below(allowed.size())];
      ASSERT_TRUE(state->Accept(token).ok());
      text += tokenizer_->TokenBytes(token);
    }
    if (!state->Complete()) continue;
    ++ended;
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    ASSERT_TRUE(json.is_object()) << text;
    EXPECT_TRUE(json.at("name").is_string()) << text;
    if (json.contains("age")) {
      EXPECT_LE(json["age"], 150) << text;
    }
  }
  EXPECT_GT(ended, 20);
}

TEST_F(GrammarTest, RefusalsSayWhatAndWhere) {
  struct Case {
    GrammarKind kind;
    const char* source;
    const char* reason;
    const char* says;
  };
  for (const Case& c : {
           Case{GrammarKind::kJsonSchema, R"({"properties":{"a/b":{"uniqueItems":true}}})",
                "grammar_unsupported", "\"uniqueItems\" at /properties/a~1b"},
           Case{GrammarKind::kJsonSchema, R"({"type":"string","minLenght":3})",
                "grammar_unsupported", "\"minLenght\" at the root"},
           Case{GrammarKind::kJsonSchema, "{", "", "not JSON"},
           Case{GrammarKind::kJsonSchema, "5", "", "object or a boolean"},
           Case{GrammarKind::kJsonSchema, "false", "", "allows nothing"},
           Case{GrammarKind::kJsonSchema, R"({"oneOf":[{"minimum":1},{"minimum":2}]})",
                "grammar_unsupported", "\"oneOf\" at the root"},
           Case{GrammarKind::kRegex, "(?=a)b", "grammar_unsupported", "look-ahead"},
           Case{GrammarKind::kRegex, "a{1,70000}", "grammar_unsupported", "at most"},
           Case{GrammarKind::kLark, "start: other", "", "other"},
           Case{GrammarKind::kEbnf, "root ::= other", "", "no rule other"},
           Case{GrammarKind::kEbnf,
                "root ::= \"a\" root \"a\" | \"aa\" tail\ntail ::= \"b\" tail | \"c\"",
                "grammar_unsupported", "does not tell"},
       }) {
    const base::Status status = Refusal({.kind = c.kind, .source = c.source});
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument) << c.source;
    EXPECT_EQ(status.reason(), c.reason) << c.source << ": " << status.message();
    EXPECT_THAT(status.message(), HasSubstr(c.says)) << c.source;
  }
}

TEST_F(GrammarTest, DeepAndLargeSourcesAreRefusedNotRun) {
  std::string deep_schema;
  for (int i = 0; i < 100; ++i) deep_schema += R"({"items":)";
  deep_schema += "true" + std::string(100, '}');
  std::string wide_schema = R"({"$defs":{"d0":{"type":"null"})";
  for (int i = 1; i < 4000; ++i) {
    wide_schema += ",\"d" + std::to_string(i) + R"(":{"items":{"$ref":"#/$defs/d)" +
                   std::to_string(i - 1) + "\"}}";
  }
  wide_schema += R"(},"$ref":"#/$defs/d3999"})";
  const std::string deep_lark =
      "start: " + std::string(5000, '(') + "\"a\"" + std::string(5000, ')');
  const std::string deep_ebnf =
      "root ::= " + std::string(5000, '(') + "\"a\"" + std::string(5000, ')');
  const std::string deep_regex = std::string(5000, '(') + "a" + std::string(5000, ')');
  for (const GrammarSpec& spec :
       {GrammarSpec{.kind = GrammarKind::kJsonSchema, .source = deep_schema},
        GrammarSpec{.kind = GrammarKind::kLark, .source = deep_lark},
        GrammarSpec{.kind = GrammarKind::kEbnf, .source = deep_ebnf},
        GrammarSpec{.kind = GrammarKind::kRegex, .source = deep_regex},
        GrammarSpec{.kind = GrammarKind::kRegex,
                    .source = std::string(GrammarCompiler::kSourceBytesMax + 1, 'a')}}) {
    EXPECT_EQ(Refusal(spec).code(), base::Code::kInvalidArgument);
  }
  // A long chain of references may be taken or not, but it must not bring the process down.
  const auto chained = compiler_.Compile({.kind = GrammarKind::kJsonSchema, .source = wide_schema});
  EXPECT_TRUE(chained.ok() || chained.status().code() == base::Code::kInvalidArgument);
}

}  // namespace
}  // namespace plumb::text
