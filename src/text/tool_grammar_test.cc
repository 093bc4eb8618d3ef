// text/tool_grammar_test.cc
// Whatever is sampled under the grammar of calls, the format's own parser reads calls of tools that
// there are, with arguments that their schemas take; and free text stays free until a call begins.
#include "text/tool_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "text/deepseek_v41_parser.h"
#include "text/grammar_testing.h"
#include "text/template_answer_parser.h"

namespace plumb::text {
namespace {

using nlohmann::json;
using testing::Allows;

struct Call {
  std::string name;
  json arguments;  // discarded: no JSON
};

ToolSpec Tool(std::string name, std::string parameters, bool strict = true) {
  return {.name = std::move(name), .parameters = std::move(parameters), .strict = strict};
}

const ToolSpec kWeather = Tool("get_weather", R"({"type":"object","properties":{
    "city":{"type":"string","minLength":1,"maxLength":20},
    "unit":{"enum":["celsius","fahrenheit"]},
    "days":{"type":["integer","null"],"minimum":1,"maximum":14}}})");
const ToolSpec kSearch = Tool("search", R"({"type":"object","properties":{
    "query":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
    "since":{"type":"string","format":"date"},
    "options":{"$ref":"#/$defs/options"}},
    "$defs":{"options":{"type":"object","properties":{"deep":{"type":"boolean"},
    "inner":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/options"}]}}}}})");
const ToolSpec kNow = Tool("now", R"({"type":"object","properties":{}})");
const ToolSpec kAny = Tool("any_thing", "{}", /*strict=*/false);

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Numbers beyond a double's range are JSON, and this reader takes none.
json Parse(const std::string& text) {
  std::string tame;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = i + 1;
    if (end < text.size() && (text[end] == '+' || text[end] == '-')) ++end;
    const size_t digits = end;
    while (end < text.size() && IsDigit(text[end])) ++end;
    const bool huge = (text[i] == 'e' || text[i] == 'E') && end >= digits + 3;
    tame += huge ? "e1" : text.substr(i, 1);
    if (huge) i = end - 1;
  }
  return json::parse(tame, nullptr, /*allow_exceptions=*/false);
}

// "2026-11-30".
bool IsDate(std::string_view text) {
  if (text.size() != 10) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (i == 4 || i == 7 ? text[i] != '-' : !IsDigit(text[i])) return false;
  return true;
}

bool WeatherHolds(const json& a) {
  const auto text = a.value("city", "");
  const size_t characters = static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  const json days = a.value("days", json("none"));
  return a.size() == 3 && a["city"].is_string() && characters >= 1 && characters <= 20 &&
         (a["unit"] == "celsius" || a["unit"] == "fahrenheit") &&
         (days.is_null() || (days.is_number_integer() && days >= 1 && days <= 14));
}

bool OptionsHold(const json& o) {
  return o.is_object() && o.size() == 2 && o.value("deep", json()).is_boolean() &&
         (o["inner"].is_null() || OptionsHold(o["inner"]));
}

bool SearchHolds(const json& a) {
  if (a.size() != 3 || !a.contains("query") || !a.contains("options")) return false;
  const json& query = a["query"];
  const bool texts = query.is_array() && std::all_of(query.begin(), query.end(),
                                                     [](const json& q) { return q.is_string(); });
  return (query.is_string() || texts) && IsDate(a["since"].get<std::string>()) &&
         OptionsHold(a["options"]);
}

// By name: whether arguments are what the schema, made strict, takes.
const std::map<std::string, bool (*)(const json&)> kHolds = {
    {"get_weather", WeatherHolds},
    {"search", SearchHolds},
    {"now", [](const json& a) { return a.empty(); }},
    {"any_thing", [](const json& a) { return a.is_object(); }},
};

class ToolGrammarTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Grammar> Compile(CallSyntax syntax, const ChatInput& input,
                                         AnswerStart start) {
    auto spec = ToolGrammar(syntax, input, start);
    EXPECT_TRUE(spec.ok() && spec->has_value()) << spec.status().ToString();
    auto grammar = compiler_.Compile(**spec);
    EXPECT_TRUE(grammar.ok()) << grammar.status().ToString() << " for " << (*spec)->source;
    return grammar.ok() ? *grammar : nullptr;
  }
  base::Status Refusal(const ChatInput& input) {
    auto spec = ToolGrammar(CallSyntax::kDsml, input, AnswerStart::kCalls);
    if (!spec.ok()) return spec.status();
    return compiler_.Compile(**spec).status();
  }

  // Tokens at random; now and then one of `hints` as a whole, so that texts end.
  std::string Sample(const Grammar& grammar, std::string_view start,
                     const std::vector<std::string>& hints, base::Rng& rng) {
    const auto state = grammar.NewState();
    std::string text(start);
    for (const TokenId token : testing::ByteTokens(start)) EXPECT_TRUE(state->Accept(token).ok());
    for (int step = 0; step < 600 && !state->Complete(); ++step) {
      if (rng.Below(3) == 0) {
        const std::string& hint = hints[rng.Below(hints.size())];
        const std::vector<TokenId> tokens = testing::ByteTokens(hint);
        if (state->CountAllowed(tokens) == tokens.size()) {
          for (const TokenId token : tokens) EXPECT_TRUE(state->Accept(token).ok());
          text += hint;
          continue;
        }
      }
      const std::vector<uint32_t> mask = testing::MaskOf(*state, *tokenizer_);
      std::vector<TokenId> allowed;
      for (uint32_t id = 0; id < tokenizer_->size(); ++id)
        if (Allows(mask, TokenId{id})) allowed.push_back(TokenId{id});
      const TokenId token = allowed[rng.Below(allowed.size())];
      EXPECT_TRUE(state->Accept(token).ok());
      if (state->Complete() && tokenizer_->TokenBytes(token).empty()) break;  // an end token
      text += tokenizer_->TokenBytes(token);
    }
    return state->Complete() ? text : "";
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler_{*tokenizer_};
};

// The calls of a whole answer; its content goes to `rest`.
std::vector<Call> ReadCalls(AnswerParser& parser, const std::string& text, std::string* rest) {
  std::vector<AnswerDelta> deltas;
  parser.Push(text, deltas);
  parser.Finish(/*stopped=*/true, deltas);
  std::vector<std::pair<std::string, std::string>> calls;
  for (const AnswerDelta& delta : deltas) {
    if (delta.kind == AnswerDelta::Kind::kCallBegin) calls.emplace_back(delta.text, "");
    if (delta.kind == AnswerDelta::Kind::kArguments) calls.back().second += delta.text;
    if (delta.kind == AnswerDelta::Kind::kContent) *rest += delta.text;
  }
  std::vector<Call> read;
  for (const auto& [name, arguments] : calls) read.push_back({name, Parse(arguments)});
  return read;
}

std::vector<Call> ReadDsml(const std::string& text, AnswerStart start, std::string* rest) {
  DeepseekV41Parser parser({.start = start, .calls = true});
  return ReadCalls(parser, text, rest);
}

const std::vector<std::string> kDsmlHints = {"</｜DSML｜ parameter>\n",
                                             "</｜DSML｜ invoke>\n",
                                             "</｜DSML｜ calls>",
                                             "\"",
                                             "]",
                                             "}",
                                             "Rome",
                                             "<｜DSML｜ parameter name=\"x\" string=\"false\">",
                                             "{\"k\": \"",
                                             "｜DSML｜",
                                             "2024-02-29",
                                             "5"};

TEST_F(ToolGrammarTest, WhatIsSampledIsCallsThatTheSchemasTake) {
  ChatInput input{.messages = {}, .tools = {kWeather, kSearch, kNow, kAny}};
  input.tool_choice = ToolChoice::kRequired;
  const auto grammar = Compile(CallSyntax::kDsml, input, AnswerStart::kCalls);
  base::Rng rng(21);
  std::map<std::string, int> seen;
  for (int round = 0; round < 120; ++round) {
    const std::string text = Sample(*grammar, "", kDsmlHints, rng);
    if (text.empty()) continue;
    std::string rest;
    const std::vector<Call> calls = ReadDsml(text, AnswerStart::kCalls, &rest);
    ASSERT_FALSE(calls.empty()) << text;
    EXPECT_EQ(rest, "") << text;
    for (const Call& call : calls) {
      ++seen[call.name];
      ASSERT_TRUE(kHolds.contains(call.name)) << text;
      ASSERT_TRUE(call.arguments.is_object()) << text;
      EXPECT_TRUE(kHolds.at(call.name)(call.arguments)) << call.arguments << " in " << text;
    }
  }
  for (const auto& [name, holds] : kHolds) EXPECT_GT(seen[name], 3) << name;
}

TEST_F(ToolGrammarTest, NamedAndSingleCallsAreJustThat) {
  ChatInput input{.messages = {}, .tools = {kWeather, kNow}};
  input.tool_choice = ToolChoice::kNamed;
  input.tool_name = "now";
  input.parallel_tool_calls = false;
  const auto named = Compile(CallSyntax::kDsml, input, AnswerStart::kCalls);
  const std::string now = "<｜DSML｜ invoke name=\"now\">\n</｜DSML｜ invoke>\n";
  EXPECT_TRUE(testing::Takes(*named, *tokenizer_, now + "</｜DSML｜ calls>"));
  EXPECT_FALSE(testing::Takes(*named, *tokenizer_, now + now + "</｜DSML｜ calls>"));
  EXPECT_FALSE(testing::Takes(*named, *tokenizer_, "<｜DSML｜ invoke name=\"get_weather\">\n"));
  input.parallel_tool_calls = true;
  const auto parallel = Compile(CallSyntax::kDsml, input, AnswerStart::kCalls);
  EXPECT_TRUE(testing::Takes(*parallel, *tokenizer_, now + now + "</｜DSML｜ calls>"));
}

TEST_F(ToolGrammarTest, AsTheModelWasTaughtIsTaken) {
  ChatInput input{.messages = {}, .tools = {kWeather, kAny, kNow}};
  input.tool_choice = ToolChoice::kRequired;
  const auto grammar = Compile(CallSyntax::kDsml, input, AnswerStart::kCalls);
  const std::string head = "<｜DSML｜ invoke name=\"get_weather\">\n";
  const std::string city =
      "<｜DSML｜ parameter name=\"city\" string=\"true\">São \"Paulo\"\n</｜DSML｜ parameter>\n";
  const std::string unit =
      "<｜DSML｜ parameter name=\"unit\" string=\"true\">celsius</｜DSML｜ parameter>\n";
  const std::string days =
      "<｜DSML｜ parameter name=\"days\" string=\"false\">3</｜DSML｜ parameter>\n";
  const std::string end = "</｜DSML｜ invoke>\n";
  const auto takes = [&](const std::string& text) {
    return testing::Takes(*grammar, *tokenizer_, text + "</｜DSML｜ calls>");
  };
  EXPECT_TRUE(takes(head + city + unit + days + end));
  EXPECT_FALSE(takes(head + city + days + end)) << "one is missing";
  EXPECT_FALSE(takes(head + city + unit + unit + days + end)) << "one is twice";
  EXPECT_TRUE(takes("<｜DSML｜ invoke name=\"now\">\n\n" + end));
  EXPECT_TRUE(takes("<｜DSML｜ invoke name=\"any_thing\">\n" + days + city + end));
  EXPECT_TRUE(
      takes("<｜DSML｜ invoke name=\"any_thing\">\n<｜DSML｜ parameter name=\"k\" "
            "string=\"false\">{\"a\": [1, \"｜DSML\"]}</｜DSML｜ parameter>\n" +
            end));
  EXPECT_FALSE(
      takes("<｜DSML｜ invoke name=\"any_thing\">\n<｜DSML｜ parameter name=\"k\" "
            "string=\"false\">{\"a\": \"｜DSML｜\"}</｜DSML｜ parameter>\n" +
            end));
}

TEST_F(ToolGrammarTest, FreeTextStaysFreeUntilACallBegins) {
  ChatInput input{.messages = {}, .tools = {kWeather, kSearch}};
  const auto grammar = Compile(CallSyntax::kDsml, input, AnswerStart::kReasoning);
  EXPECT_TRUE(testing::TakesWhole(*grammar, *tokenizer_,
                                  testing::ByteTokens("so {\"a\"</think>\n\nNo <b>call</b>.")));
  base::Rng rng(4);
  int read = 0;
  for (int round = 0; round < 30; ++round) {
    const std::string text =
        Sample(*grammar, "hm\n</think>\n\nLook.\n\n<｜DSML｜", kDsmlHints, rng);
    if (text.empty()) continue;
    ++read;
    std::string rest;
    const std::vector<Call> calls = ReadDsml(text, AnswerStart::kReasoning, &rest);
    EXPECT_EQ(rest, "Look.") << text;
    ASSERT_FALSE(calls.empty()) << text;
    for (const Call& call : calls)
      EXPECT_TRUE(kHolds.at(call.name)(call.arguments)) << call.arguments << " in " << text;
  }
  EXPECT_GT(read, 5);
  // The older spelling, which the parser reads too, is no way around.
  const auto state = grammar->NewState();
  EXPECT_EQ(state->CountAllowed(testing::ByteTokens("<｜DSML｜tool_calls>")),
            std::string_view("<｜DSML｜").size());
}

std::vector<Call> ReadJson(CallSyntax syntax, const std::string& text, AnswerStart start,
                           std::string* rest) {
  TemplateAnswerParser parser({.start = start, .calls = syntax});
  return ReadCalls(parser, text, rest);
}

const std::vector<std::string> kJsonHints = {
    "\"", "]", "}", "2024-02-29", "\n</tool_call>", "5", ", ", "[TOOL_CALLS]", "[ARGS]", "true"};

// Where a call begins, in a text that was free until then.
std::string BeginOf(CallSyntax syntax) {
  return syntax == CallSyntax::kLlama ? "{" : std::string(CallMark(syntax));
}

TEST_F(ToolGrammarTest, OtherSyntaxesWriteWhatTheirParserReads) {
  const ChatInput strict{.messages = {}, .tools = {kWeather, kSearch, kNow, kAny}};
  base::Rng rng(6);
  for (const CallSyntax syntax :
       {CallSyntax::kHermes, CallSyntax::kLlama, CallSyntax::kMistral, CallSyntax::kMistralNamed}) {
    struct Situation {
      ToolChoice choice;
      AnswerStart start;
      std::string before;
      std::string content;
    };
    const bool whole = syntax == CallSyntax::kLlama;  // a call is the whole answer
    const std::string look = whole ? "" : "Look.";
    const Situation situations[] = {
        {ToolChoice::kRequired, AnswerStart::kContent, "", ""},
        {ToolChoice::kRequired, AnswerStart::kReasoning, "hm <x\n</think>", ""},
        {ToolChoice::kAuto, AnswerStart::kContent, look + BeginOf(syntax), look},
        {ToolChoice::kAuto, AnswerStart::kReasoning, "hm</think>" + look + BeginOf(syntax), look},
    };
    for (const Situation& situation : situations) {
      ChatInput input = strict;
      input.tool_choice = situation.choice;
      const auto grammar = Compile(syntax, input, situation.start);
      ASSERT_NE(grammar, nullptr);
      int read = 0;
      for (int round = 0; round < 12; ++round) {
        const std::string text = Sample(*grammar, situation.before, kJsonHints, rng);
        if (text.empty()) continue;
        ++read;
        std::string rest;
        const std::vector<Call> calls = ReadJson(syntax, text, situation.start, &rest);
        EXPECT_EQ(rest, situation.content) << text;
        ASSERT_FALSE(calls.empty()) << text;
        for (const Call& call : calls)
          EXPECT_TRUE(kHolds.at(call.name)(call.arguments)) << call.arguments << " in " << text;
      }
      EXPECT_GT(read, 2) << CallSyntaxName(syntax) << " after " << situation.before;
    }
  }
}

TEST_F(ToolGrammarTest, OneCallIsAllWhereNoMoreAreWanted) {
  for (const CallSyntax syntax :
       {CallSyntax::kHermes, CallSyntax::kLlama, CallSyntax::kMistral, CallSyntax::kMistralNamed}) {
    ChatInput input{.messages = {}, .tools = {kAny}};
    EXPECT_FALSE(ToolGrammar(syntax, input, AnswerStart::kContent).value().has_value());
    input.parallel_tool_calls = false;
    const auto state = Compile(syntax, input, AnswerStart::kContent)->NewState();
    const std::map<CallSyntax, std::string> texts = {
        {CallSyntax::kHermes,
         "<tool_call>\n{\"name\": \"any_thing\", \"arguments\": {}}\n</tool_call>"},
        {CallSyntax::kLlama, "{\"name\": \"any_thing\", \"parameters\": {}}"},
        {CallSyntax::kMistral, "[TOOL_CALLS][{\"name\": \"any_thing\", \"arguments\": {}}]"},
        {CallSyntax::kMistralNamed, "[TOOL_CALLS]any_thing[ARGS]{}"}};
    for (const TokenId token : testing::ByteTokens(texts.at(syntax)))
      ASSERT_TRUE(state->Accept(token).ok()) << texts.at(syntax);
    EXPECT_TRUE(state->Complete()) << texts.at(syntax);
  }
}

TEST_F(ToolGrammarTest, FreeTextStaysFree) {
  for (const CallSyntax syntax : {CallSyntax::kHermes, CallSyntax::kLlama, CallSyntax::kMistral}) {
    const ChatInput input{.messages = {}, .tools = {kWeather}};
    for (const AnswerStart start : {AnswerStart::kContent, AnswerStart::kReasoning}) {
      const auto state = Compile(syntax, input, start)->NewState();
      std::string text = start == AnswerStart::kReasoning ? "{ <tool_call>\n</think>" : "";
      text += "Well, {\"a\": 1} <tool_cal [TOOL é\n";
      const std::vector<TokenId> tokens = testing::ByteTokens(text);
      EXPECT_EQ(state->CountAllowed(tokens), tokens.size()) << CallSyntaxName(syntax);
    }
  }
}

TEST_F(ToolGrammarTest, NothingIsHeldWhereNothingWasAskedFor) {
  ChatInput input{.messages = {}, .tools = {kAny}};
  const auto held = [&] {
    return ToolGrammar(CallSyntax::kDsml, input, AnswerStart::kContent).value().has_value();
  };
  EXPECT_FALSE(held());
  input.tools.push_back(kNow);
  EXPECT_TRUE(held());
  input.tool_choice = ToolChoice::kNone;
  EXPECT_FALSE(held());
  input.tool_choice = ToolChoice::kAuto;
  input.tools.clear();
  EXPECT_FALSE(held());
}

TEST_F(ToolGrammarTest, RefusalsNameTheToolAndThePlace) {
  for (const auto& [parameters, says] : std::map<std::string, std::string>{
           {R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}})",
            "the tool f: \"uniqueItems\" at /properties/a"},
           {R"({"type":"object","properties":{"a":{"type":"strin"}}})",
            "the tool f: \"type\" at /properties/a"},
           {R"({"type":"object","properties":{"a":{"type":"string","format":"email"}}})",
            "the tool f: the parameter \"a\""},
           {R"({"anyOf":[{"type":"object"}]})", "the tool f: \"anyOf\" at the root"},
       }) {
    ChatInput input{.messages = {}, .tools = {Tool("f", parameters)}};
    input.tool_choice = ToolChoice::kRequired;
    const base::Status status = Refusal(input);
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument) << parameters;
    EXPECT_THAT(status.message(), ::testing::HasSubstr(says));
  }
  ChatInput input{.messages = {}, .tools = {Tool("f", "[]")}};
  EXPECT_EQ(Refusal(input).field(), "tools[0].function.parameters");
}

}  // namespace
}  // namespace plumb::text
