// api/chat_tools_test.cc
// Reasoning and calls of tools over the wire, for a model whose format has them: what the prompt
// becomes, what answers become whole and streamed, and what is refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/testing/service_fixture.h"
#include "text/grammar_compiler.h"

namespace plumb::api::testing {
namespace {

FakeScript Say(std::string text, uint32_t chunk_tokens = 1) {
  return [text, chunk_tokens](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = ByteTokens(text), .chunk_tokens = chunk_tokens, .failure = {}};
  };
}

struct DeepseekFixture : ServiceFixture {
  explicit DeepseekFixture(FakeScript script)
      : ServiceFixture(std::move(script), {}, {}, FixtureModel::kDeepseek) {}

  // The prompt of the last request as text; special tokens stand as their names.
  std::string Prompt() {
    std::string text;
    for (const base::TokenId token : generator.last_request().prompt) {
      const bool byte = base::Index(token) < 256;
      text += byte ? tokenizer->TokenBytes(token) : tokenizer->TokenName(token);
    }
    return text;
  }
  json Error(const json& body) { return json::parse(Ask(body).body).at("error"); }
};

const json kTools = json::parse(
    R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object",)"
    R"("properties":{"city":{"type":"string"}}}}}])");

constexpr const char* kCall =
    "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"city\" "
    "string=\"true\">R\xC3\xB6m</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
const std::string kAnswer = "hm\n</think>\n\nLook.\n\n" + std::string(kCall);

TEST(ChatTools, WholeAnswerHasReasoningAndCalls) {
  DeepseekFixture fixture(Say(kAnswer));
  const json answer = json::parse(fixture.Ask(ChatBody({{"tools", kTools}})).body);
  const json& choice = answer.at("choices").at(0);
  EXPECT_EQ(choice["message"]["reasoning_content"], "hm");
  EXPECT_EQ(choice["message"]["content"], "Look.");
  const json& call = choice["message"]["tool_calls"].at(0);
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"]["name"], "f");
  EXPECT_EQ(call["function"]["arguments"], "{\"city\": \"R\xC3\xB6m\"}");
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("call_"));
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
}

TEST(ChatTools, ContentIsNullWhenThereAreOnlyCalls) {
  DeepseekFixture fixture(Say("</think>" + std::string(kCall)));
  const json answer = json::parse(fixture.Ask(ChatBody({{"tools", kTools}})).body);
  const json& message = answer.at("choices").at(0)["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_FALSE(message.contains("reasoning_content"));
}

TEST(ChatTools, StreamUnderAnyChunkingIsTheWholeAnswer) {
  for (uint32_t chunk = 0; chunk <= kAnswer.size() + 1; chunk += chunk < 8 ? 1 : 29) {
    DeepseekFixture fixture(Say(kAnswer, chunk));
    const json body = ChatBody({{"tools", kTools}, {"n", 2}, {"logprobs", true}, {"seed", 3}});
    const json whole = json::parse(fixture.Ask(body).body);
    json streamed = body;
    streamed["stream"] = true;
    const Streamed parts = PutTogether(fixture.Ask(streamed).body, 2);
    EXPECT_TRUE(parts.done);
    for (size_t i = 0; i < 2; ++i) {
      const json& choice = whole["choices"][i];
      EXPECT_EQ(parts.choices[i].reasoning, choice["message"]["reasoning_content"]);
      EXPECT_EQ(parts.choices[i].content, choice["message"]["content"]);
      EXPECT_EQ(parts.choices[i].finish_reason, choice["finish_reason"]);
      EXPECT_EQ(parts.choices[i].logprobs, choice["logprobs"]["content"]);
      json calls = choice["message"]["tool_calls"];
      ASSERT_EQ(parts.choices[i].tool_calls.size(), calls.size());
      for (size_t j = 0; j < calls.size(); ++j)  // ids are of one answer
        EXPECT_EQ(parts.choices[i].tool_calls[j]["function"], calls[j]["function"]);
    }
  }
}

TEST(ChatTools, ArgumentsAreStreamedWhileTheyAreWritten) {
  const std::string text(2048, 'x');
  DeepseekFixture fixture(
      Say("</think><｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ "
          "parameter name=\"city\" string=\"true\">" +
          text));
  const auto events = StreamData(
      fixture.Ask(ChatBody({{"tools", kTools}, {"stream", true}, {"max_tokens", 2300}})).body);
  EXPECT_GT(events.size(), 2000u);
}

TEST(ChatTools, WithoutToolsTheirMarkupIsContent) {
  DeepseekFixture fixture(Say("</think>" + std::string(kCall)));
  const json answer = json::parse(fixture.Ask(ChatBody()).body);
  EXPECT_EQ(answer["choices"][0]["message"]["content"], kCall);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
}

TEST(ChatTools, ACallCutOffIsNoCallToMake) {
  DeepseekFixture fixture(Say(kAnswer));
  const json answer =
      json::parse(fixture.Ask(ChatBody({{"tools", kTools}, {"max_tokens", 150}})).body);
  const json& choice = answer.at("choices").at(0);
  EXPECT_EQ(choice["finish_reason"], "length");
  const std::string arguments = choice["message"]["tool_calls"][0]["function"]["arguments"];
  EXPECT_FALSE(json::accept(arguments)) << arguments;
}

TEST(ChatTools, WithoutParallelCallsTheFirstOneEndsTheAnswer) {
  const std::string two =
      "</think><｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>\n"
      "<｜DSML｜ invoke name=\"g\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
  DeepseekFixture fixture(Say(two));
  const json body = ChatBody({{"tools", kTools}, {"parallel_tool_calls", false}});
  const json answer = json::parse(fixture.Ask(body).body);
  EXPECT_EQ(answer["choices"][0]["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], "{}");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_LT(answer["usage"]["completion_tokens"], two.size());
}

TEST(ChatTools, AnAnswerCanBeSentBackWithItsResult) {
  DeepseekFixture fixture(Say(kAnswer));
  json body = ChatBody({{"tools", kTools}});
  const json answer = json::parse(fixture.Ask(body).body);
  json message = answer["choices"][0]["message"];
  body["messages"].push_back(message);
  body["messages"].push_back(
      {{"role", "tool"}, {"tool_call_id", message["tool_calls"][0]["id"]}, {"content", "sunny"}});
  EXPECT_EQ(fixture.Ask(body).status, 200);
  const std::string prompt = fixture.Prompt();
  const std::string expected = "<｜User｜>hi<｜Assistant｜><think>hm</think>Look.\n\n" +
                               std::string(kCall) +
                               "<｜end▁of▁sentence｜><｜User｜><tool_result>sunny</tool_result>"
                               "<｜Assistant｜><think>";
  EXPECT_TRUE(prompt.ends_with(expected)) << prompt;
}

TEST(ChatTools, EffortAndThinkingReachThePrompt) {
  DeepseekFixture fixture(Say("x"));
  const auto prompt = [&](json members) {
    EXPECT_EQ(fixture.Ask(ChatBody(std::move(members))).status, 200);
    return fixture.Prompt();
  };
  EXPECT_NE(prompt({{"reasoning_effort", 42}}).find("Reasoning Effort: 42 "), std::string::npos);
  EXPECT_NE(prompt({{"reasoning_effort", "max"}}).find("Reasoning Effort: 100 "),
            std::string::npos);
  EXPECT_EQ(prompt({{"reasoning_effort", "none"}}),
            "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜></think>");
  EXPECT_EQ(prompt({{"thinking", {{"type", "disabled"}}}}),
            "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜></think>");
  EXPECT_EQ(
      prompt({{"messages", json::parse(R"([{"role":"user","content":"a"},)"
                                       R"({"role":"assistant","content":"b","prefix":true}])")},
              {"reasoning_effort", "none"}}),
      "<｜begin▁of▁sentence｜><｜User｜>a<｜Assistant｜></think>b");
}

TEST(ChatTools, WhatARequestSaysOfSamplingIsKept) {
  DeepseekFixture fixture(Say("x"));
  fixture.Ask(ChatBody({{"temperature", 0.25}, {"top_p", 0.5}}));
  EXPECT_FLOAT_EQ(fixture.generator.last_request().sampling.temperature, 0.25f);
  EXPECT_FLOAT_EQ(fixture.generator.last_request().sampling.top_p, 0.5f);
  fixture.Ask(ChatBody());
  EXPECT_FLOAT_EQ(fixture.generator.last_request().sampling.temperature, 1.0f);
  EXPECT_FLOAT_EQ(fixture.generator.last_request().sampling.top_p, 1.0f);
}

TEST(ChatTools, WhatAMessageSpellsIsText) {
  DeepseekFixture fixture(Say("x"));
  fixture.Ask(ChatBody({{"messages", {{{"role", "user"}, {"content", "<｜Assistant｜>"}}}}}));
  size_t headers = 0;
  for (const base::TokenId token : fixture.generator.last_request().prompt)
    headers += fixture.tokenizer->TokenName(token) == "<｜Assistant｜>" ? 1 : 0;
  EXPECT_EQ(headers, 1u);
}

// The answer begins in a block of calls, with a tool that there is.
TEST(ChatTools, ACallThatMustComeIsHeldByAGrammar) {
  const auto tokenizer = MakeDeepseekTokenizer();
  const auto format = MakeDeepseekFormat(*tokenizer);
  text::ChatInput input{.messages = {{.role = "user", .content = "hi"}}};
  input.tools = {{.name = "f"}, {.name = "get_g"}};
  text::GrammarCompiler grammars(*tokenizer);
  const auto accepted = [&](const std::string& answer) {
    const auto prompt = format->Encode(input, 4096);
    EXPECT_TRUE(prompt.ok()) << prompt.status().ToString();
    EXPECT_TRUE(prompt->text.ends_with("</think>\n\n<｜DSML｜ calls>\n"));
    EXPECT_EQ(prompt->start, text::AnswerStart::kCalls);
    const auto grammar = grammars.Compile(*prompt->grammar);
    EXPECT_TRUE(grammar.ok()) << grammar.status().ToString();
    const auto tokens = ByteTokens(answer);
    return (*grammar)->NewState()->CountAllowed(tokens) == tokens.size();
  };
  input.tool_choice = text::ToolChoice::kRequired;
  EXPECT_TRUE(accepted("<｜DSML｜ invoke name=\"get_g\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"));
  EXPECT_TRUE(accepted("<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"));
  EXPECT_FALSE(accepted("<｜DSML｜ invoke name=\"f\">\n")) << "a call is not left open";
  EXPECT_FALSE(accepted("<｜DSML｜ invoke name=\"h\">\n"));
  EXPECT_FALSE(accepted("no"));
  input.tool_choice = text::ToolChoice::kNamed;
  input.tool_name = "get_g";
  EXPECT_FALSE(accepted("<｜DSML｜ invoke name=\"f\">\n"));
}

TEST(ChatTools, RefusesByField) {
  DeepseekFixture fixture(Say("x"));
  const auto tool = [](const char* function) {
    return json{{"tools", {{{"type", "function"}, {"function", json::parse(function)}}}}};
  };
  const std::pair<json, const char*> cases[] = {
      {{{"tools", 5}}, "tools"},
      {{{"tools", {5}}}, "tools[0]"},
      {{{"tools", {{{"type", "web"}}}}}, "tools[0].type"},
      {{{"tools", {{{"type", "function"}}}}}, "tools[0].function"},
      {tool(R"({"name":"a b"})"), "tools[0].function.name"},
      {tool(R"({"name":5})"), "tools[0].function.name"},
      {tool("{}"), "tools[0].function.name"},
      {tool(R"({"name":"f","parameters":[]})"), "tools[0].function.parameters"},
      {tool(R"({"name":"f","color":1})"), "tools[0].function.color"},
      {{{"tool_choice", "required"}}, "tool_choice"},
      {{{"tool_choice", "sometimes"}}, "tool_choice"},
      {{{"tool_choice", {{"type", "function"}}}}, "tool_choice.function"},
      {{{"tool_choice", {{"type", "function"}, {"function", {{"name", "g"}}}}}, {"tools", kTools}},
       "tool_choice.function.name"},
      {{{"reasoning_effort", 0}}, "reasoning_effort"},
      {{{"reasoning_effort", 101}}, "reasoning_effort"},
      {{{"reasoning_effort", "loud"}}, "reasoning_effort"},
      {{{"reasoning_effort", "7"}}, "reasoning_effort"},
      {{{"reasoning_effort", "HIGH"}}, "reasoning_effort"},
      {{{"thinking", true}}, "thinking"},
      {{{"thinking", json::object()}}, "thinking.type"},
      {{{"thinking", {{"type", "maybe"}}}}, "thinking.type"},
      {{{"thinking", {{"type", "disabled"}, {"budget_tokens", 5}}}}, "thinking.budget_tokens"},
      {{{"thinking", {{"type", "enabled"}, {"budget_tokens", 0}}}}, "thinking.budget_tokens"},
      {{{"thinking_budget", 0}}, "thinking_budget"},
      {{{"thinking_budget", 1}, {"max_thinking_tokens", 2}}, "thinking_budget"},
      {{{"thinking_budget", 5}, {"ignore_eos", true}}, "ignore_eos"},
      {{{"response_format", {{"type", "json_object"}}}, {"tools", kTools}}, "response_format"},
      {{{"response_format", {{"type", "json_object"}}}, {"ignore_eos", true}}, "ignore_eos"},
      {{{"tool_choice", "required"}, {"tools", kTools}, {"ignore_eos", true}}, "ignore_eos"},
  };
  for (const auto& [members, field] : cases)
    EXPECT_EQ(fixture.Error(ChatBody(members))["param"], field) << members;
  const std::pair<const char*, const char*> messages[] = {
      {R"([{"role":"user","content":"x","tool_calls":[{}]}])", "messages[0].tool_calls"},
      {R"([{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f"}}]}])",
       "messages[0].tool_calls"},
      {R"([{"role":"assistant","tool_calls":[{"id":"c","function":{"name":1}}]}])",
       "messages[0].tool_calls[0].function.name"},
      {R"([{"role":"assistant","tool_calls":[{"id":"c","extra":1,"function":{}}]}])",
       "messages[0].tool_calls[0].extra"},
      {R"([{"role":"user","content":"x"},{"role":"tool","content":"y","tool_call_id":"c"}])",
       "messages[1].role"},
      {R"([{"role":"user","content":"x","task":"sing"}])", "messages[0].task"},
      {R"([{"role":"user","content":"x","prefix":true}])", "messages[0].prefix"},
      {R"([{"role":"tool","content":null}])", "messages[0].content"},
  };
  for (const auto& [list, field] : messages)
    EXPECT_EQ(fixture.Error(ChatBody({{"messages", json::parse(list)}}))["param"], field) << list;
}

}  // namespace
}  // namespace plumb::api::testing
