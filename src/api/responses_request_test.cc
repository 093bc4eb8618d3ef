// api/responses_request_test.cc
// The body of POST /v1/responses: what its items become for the model, what is looked up, what is
// shown again, and what is refused by which name.
#include "api/responses_request.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace plumb::api {
namespace {

using nlohmann::json;
using text::ChatMessage;

constexpr RequestLimits kLimits{.vocabulary_size = 1000,
                                .abilities = {.tools = true, .reasoning = true, .guides = true}};
constexpr RequestLimits kPlainLimits{.vocabulary_size = 1000};

base::Result<ResponsesRequest> Parse(json members, const RequestLimits& limits = kLimits,
                                     const ResponsesContext& context = {}) {
  json body = {{"model", "m"}, {"input", "hi"}};
  body.update(members);
  return ParseResponsesRequest(body.dump(), limits, context);
}

ResponsesRequest Good(json members, const RequestLimits& limits = kLimits,
                      const ResponsesContext& context = {}) {
  auto request = Parse(std::move(members), limits, context);
  EXPECT_TRUE(request.ok()) << request.status().ToString();
  return request.ok() ? *std::move(request) : ResponsesRequest();
}

std::string FieldOf(json members, const RequestLimits& limits = kLimits) {
  const auto request = Parse(members, limits);
  return request.ok() ? "nothing is wrong with " + members.dump() : request.status().field();
}

json Echo(const ResponsesRequest& request) { return json::parse("{" + request.echo + "}"); }

TEST(ResponsesRequest, ATextIsAUsersMessage) {
  const ResponsesRequest request = Good({{"instructions", "Be brief."}});
  ASSERT_EQ(request.input.messages.size(), 2u);
  EXPECT_EQ(request.input.messages[0].role, "system");
  EXPECT_EQ(request.input.messages[0].content, "Be brief.");
  EXPECT_EQ(request.input.messages[1].role, "user");
  EXPECT_EQ(request.input.messages[1].content, "hi");
  EXPECT_TRUE(request.store);
  EXPECT_FALSE(request.stream);
}

// One turn of the assistant comes as several items.
TEST(ResponsesRequest, ItemsOfOneTurnAreOneMessage) {
  const auto messages = Good({{"input", json::parse(R"([
      {"role": "user", "content": [{"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "b"}]},
      {"type": "reasoning", "summary": [{"type": "summary_text", "text": "no"}],
        "content": [{"type": "reasoning_text", "text": "hm"}]},
      {"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "Look."}]},
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
      {"type": "custom_tool_call", "call_id": "2", "name": "p", "input": "x\"y"},
      {"type": "function_call_output", "call_id": "1", "output": "o"},
      {"type": "custom_tool_call_output", "call_id": "2", "output": [
        {"type": "input_text", "text": "p"}]},
      {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "so"}]},
      {"type": "message", "role": "assistant", "content": "Done."},
      {"role": "developer", "content": "c"}])")}})
                            .input.messages;
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0].content, "ab");
  ASSERT_EQ(messages[0].parts.size(), 2u);
  EXPECT_EQ(messages[1].role, "assistant");
  EXPECT_EQ(messages[1].reasoning, "hm");
  EXPECT_EQ(messages[1].content, "Look.");
  ASSERT_EQ(messages[1].tool_calls.size(), 2u);
  EXPECT_EQ(messages[1].tool_calls[0].id, "1");
  EXPECT_EQ(messages[1].tool_calls[0].arguments, "{}");
  EXPECT_EQ(messages[1].tool_calls[1].arguments, R"({"input": "x\"y"})");
  EXPECT_EQ(messages[2].role, "tool");
  EXPECT_EQ(messages[2].tool_call_id, "1");
  EXPECT_EQ(messages[2].content, "o");
  EXPECT_EQ(messages[3].content, "p");
  EXPECT_EQ(messages[4].reasoning, "so");
  EXPECT_EQ(messages[4].content, "Done.");
  EXPECT_EQ(messages[5].role, "system");
}

TEST(ResponsesRequest, TwoMessagesOfTheAssistantStayTwo) {
  const auto messages = Good({{"input", json::parse(R"([
      {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
      {"role": "assistant", "content": "c"}])")}})
                            .input.messages;
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[2].content, "c");
}

TEST(ResponsesRequest, ReasoningComesBackFromWhereItStands) {
  const auto reasoning = [](const char* item) {
    const auto request =
        Good({{"input", {{{"role", "user"}, {"content", "a"}}, json::parse(item)}}});
    return request.input.messages.size() > 1 ? request.input.messages[1].reasoning : "none";
  };
  EXPECT_EQ(
      reasoning(R"({"type": "reasoning", "summary": [], "encrypted_content": "plumb.open.1:hm"})"),
      "hm");
  EXPECT_EQ(
      reasoning(R"({"type": "reasoning", "summary": [], "encrypted_content": "plumb.open.1:no",
                          "content": [{"type": "reasoning_text", "text": "hm"}]})"),
      "hm");
  EXPECT_EQ(reasoning(R"({"type": "reasoning", "summary": [], "content": null})"), "none");
}

TEST(ResponsesRequest, ToolsReachTheModelUnderOneName) {
  const ResponsesRequest request = Good({{"tools", json::parse(R"([
      {"type": "function", "name": "f", "description": "d", "strict": true,
        "parameters": {"type": "object"}, "defer_loading": true},
      {"type": "web_search"},
      {"type": "namespace", "name": "n", "description": "x", "tools": [
        {"type": "function", "name": "g"}, {"type": "custom", "name": "h"}]},
      {"type": "custom", "name": "p", "description": "d", "format": {"type": "grammar",
        "syntax": "lark", "definition": "start: X"}}])")}});
  const auto& specs = request.input.tools;
  ASSERT_EQ(specs.size(), 4u);
  EXPECT_EQ(specs[0].name, "f");
  EXPECT_TRUE(specs[0].strict);
  EXPECT_EQ(json::parse(specs[0].parameters)["type"], "object");
  EXPECT_EQ(specs[1].name, "n__g");
  EXPECT_EQ(specs[2].name, "n__h");
  EXPECT_EQ(specs[3].name, "p");
  EXPECT_NE(specs[3].description.find("start: X"), std::string::npos);
  EXPECT_EQ(json::parse(specs[3].parameters)["required"], json::array({"input"}));
  const ResponsesTool* tool = request.tools.Find("n__h");
  ASSERT_NE(tool, nullptr);
  EXPECT_TRUE(tool->custom);
  EXPECT_EQ(tool->name, "h");
  EXPECT_EQ(tool->tool_space, "n");
  const json shown = Echo(request)["tools"];
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[1]["type"], "namespace");
}

TEST(ResponsesRequest, ToolChoiceNamesToolsOfTheRequest) {
  const json tools = json::parse(R"([{"type": "function", "name": "f"},
      {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]}])");
  const auto choose = [&](const char* choice) {
    return Good({{"tools", tools}, {"tool_choice", json::parse(choice)}}).input;
  };
  EXPECT_EQ(choose("\"required\"").tool_choice, text::ToolChoice::kRequired);
  EXPECT_EQ(choose("\"none\"").tool_choice, text::ToolChoice::kNone);
  EXPECT_EQ(choose("null").tool_choice, text::ToolChoice::kAuto);
  EXPECT_EQ(choose(R"({"type": "function", "name": "g", "namespace": "n"})").tool_name, "n__g");
  const auto allowed = choose(
      R"({"type": "allowed_tools", "mode": "required",
          "tools": [{"type": "function", "name": "f"}]})");
  EXPECT_EQ(allowed.tool_choice, text::ToolChoice::kRequired);
  ASSERT_EQ(allowed.tools.size(), 1u);
  EXPECT_EQ(allowed.tools[0].name, "f");
}

TEST(ResponsesRequest, GoesOnFromWhatIsKept) {
  auto item = std::make_shared<ResponsesItem>();
  item->id = "msg_kept";
  item->role = "assistant";
  item->text = "kept";
  ResponsesContext context;
  context.response = [&](const std::string& id) {
    return id == "resp_1" ? std::optional(ItemList{item}) : std::nullopt;
  };
  context.item = [&](const std::string& id) { return id == item->id ? item : nullptr; };
  const auto request =
      Good({{"previous_response_id", "resp_1"}, {"instructions", "new"}}, kLimits, context);
  ASSERT_EQ(request.items.size(), 2u);
  EXPECT_EQ(request.items[0], item);
  ASSERT_EQ(request.input.messages.size(), 3u);
  EXPECT_EQ(request.input.messages[1].content, "kept");

  const auto named =
      Good({{"input", {{{"type", "item_reference"}, {"id", "msg_kept"}}, {{"id", "msg_kept"}}}}},
           kLimits, context);
  ASSERT_EQ(named.items.size(), 2u);
  EXPECT_EQ(named.items[1], item);

  const auto missing = Parse({{"previous_response_id", "resp_2"}}, kLimits, context);
  EXPECT_EQ(missing.status().reason(), "previous_response_not_found");
  EXPECT_EQ(Parse({{"previous_response_id", "resp_1"}}).status().field(), "previous_response_id");
}

TEST(ResponsesRequest, ItemsWithoutAnIdGetOne) {
  ResponsesContext context;
  context.number = 0xAB;
  const auto request = Good({{"input", json::parse(R"([{"role": "user", "content": "a"},
      {"id": "mine", "role": "user", "content": "b"}])")}},
                            kLimits, context);
  EXPECT_EQ(request.items[0]->id, "msg_00000000000000ab_0");
  EXPECT_EQ(request.items[1]->id, "mine");
}

TEST(ResponsesRequest, FormatsAreThoseOfResponseFormatWithOpenAIsFlatSchema) {
  const auto flat = Good({{"text", {{"format", json::parse(R"({"type": "json_schema", "name": "n",
      "strict": true, "schema": {"type": "object"}})")}}}});
  ASSERT_TRUE(flat.grammar.has_value());
  EXPECT_EQ(flat.grammar->kind, text::GrammarKind::kJsonSchema);
  EXPECT_EQ(json::parse(flat.grammar->source)["type"], "object");
  EXPECT_FALSE(flat.input.response_schema.empty());
  const auto regex = Good({{"text", {{"format", {{"type", "regex"}, {"regex", "a+"}}}}}});
  ASSERT_TRUE(regex.grammar.has_value());
  EXPECT_EQ(regex.grammar->kind, text::GrammarKind::kRegex);
  EXPECT_FALSE(Good({{"text", {{"format", {{"type", "text"}}}}}}).grammar.has_value());
}

TEST(ResponsesRequest, OurExtensionsAreThoseOfChat) {
  const auto request = Good({{"seed", -5},
                             {"top_k", 3},
                             {"stop", "x"},
                             {"min_p", 0.5},
                             {"priority", "batch"},
                             {"service_tier", "priority"},
                             {"deadline_ms", 9},
                             {"speculation", "off"}});
  EXPECT_EQ(static_cast<int64_t>(request.sampling.seed), -5);
  EXPECT_EQ(request.sampling.top_k, 3u);
  EXPECT_EQ(request.priority, engine::Priority::kBatch);
  EXPECT_EQ(request.deadline_ms, 9u);
  EXPECT_EQ(request.speculation, engine::Speculation::kOff);
  EXPECT_EQ(Echo(request)["service_tier"], "flex");
}

TEST(ResponsesRequest, RefusesItemsByField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"model": null})", "model"},
      {R"({"input": null})", "input"},
      {R"({"input": 5})", "input"},
      {R"({"input": []})", "input"},
      {R"({"input": [5]})", "input[0]"},
      {R"({"input": [{"content": "a"}]})", "input[0].type"},
      {R"({"input": [{"type": "compaction"}]})", "input[0].type"},
      {R"({"input": [{"role": "user"}]})", "input[0].content"},
      {R"({"input": [{"type": "message", "content": "a"}]})", "input[0].role"},
      {R"({"input": [{"role": "user", "content": [{"text": "a"}]}]})", "input[0].content[0].type"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_text"}]}]})",
       "input[0].content[0].text"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_text", "text": "a", "b": 1}]}]})",
       "input[0].content[0].b"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_file"}]}]})",
       "input[0].content[0]"},
      {R"({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]})",
       "input[0].call_id"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]})",
       "input[0].name"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}]})",
       "input[0].arguments"},
      {R"({"input": [{"type": "custom_tool_call", "call_id": "c", "name": "f"}]})",
       "input[0].input"},
      {R"({"input": [{"type": "function_call_output", "call_id": "c"}]})", "input[0].output"},
      {R"({"input": [{"type": "function_call_output", "call_id": "c", "output": 5}]})",
       "input[0].output"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "",
           "caller": {"type": "program"}}]})",
       "input[0].caller"},
      {R"({"input": [{"type": "item_reference"}]})", "input[0].id"},
      {R"({"input": [{"type": "item_reference", "id": "x"}]})", "input[0].id"},
  };
  for (const auto& [members, field] : cases) EXPECT_EQ(FieldOf(json::parse(members)), field);
}

TEST(ResponsesRequest, RefusesTheRestByField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"tools": 5})", "tools"},
      {R"({"tools": [{"name": "f"}]})", "tools[0].type"},
      {R"({"tools": [{"type": "function"}]})", "tools[0].name"},
      {R"({"tools": [{"type": "function", "name": "f", "function": {}}]})", "tools[0].function"},
      {R"({"tools": [{"type": "function", "name": "f", "parameters": []}]})",
       "tools[0].parameters"},
      {R"({"tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "f"}]})",
       "tools[1].name"},
      {R"({"tools": [{"type": "namespace", "name": "n"}]})", "tools[0].tools"},
      {R"({"tools": [{"type": "custom", "name": "f", "format": {"type": "x"}}]})",
       "tools[0].format.type"},
      {R"({"tool_choice": 5})", "tool_choice"},
      {R"({"tool_choice": {}})", "tool_choice.type"},
      {R"({"tool_choice": {"type": "function"}})", "tool_choice.name"},
      {R"({"tool_choice": {"type": "function", "name": "f"}})", "tool_choice.name"},
      {R"({"tool_choice": {"type": "allowed_tools", "mode": "auto"}})", "tool_choice.tools"},
      {R"({"tool_choice": {"type": "allowed_tools", "mode": "x", "tools": []}})",
       "tool_choice.mode"},
      {R"({"tool_choice": {"type": "mcp", "server_label": "x"}})", "tool_choice"},
      {R"({"reasoning": {"effort": 0}})", "reasoning.effort"},
      {R"({"reasoning": {"summary": "long"}})", "reasoning.summary"},
      {R"({"reasoning": {"depth": 3}})", "reasoning.depth"},
      {R"({"text": {"format": {"type": "json_schema", "name": "n", "schema": 5}}})",
       "text.format.schema"},
      {R"({"text": {"tone": "dry"}})", "text.tone"},
      {R"({"include": "all"})", "include"},
      {R"({"include": [null]})", "include[0]"},
      {R"({"top_logprobs": 1, "tools": [{"type": "function", "name": "f"}]})", "top_logprobs"},
      {R"({"max_output_tokens": 1.5})", "max_output_tokens"},
      {R"({"background": true, "store": false})", "background"},
      {R"({"background": true, "stream": true})", "background"},
      {R"({"conversation": {"id": "c"}})", "conversation"},
      {R"({"context_management": [{"type": "compaction"}]})", "context_management"},
      {R"({"stream_options": {"include_usage": true}, "stream": true})",
       "stream_options.include_usage"},
      {R"({"n": 2})", "n"},
      {R"({"max_tokens": 2})", "max_tokens"},
      {R"({"metadata": {"a": {}}})", "metadata.a"},
  };
  for (const auto& [members, field] : cases) EXPECT_EQ(FieldOf(json::parse(members)), field);
}

TEST(ResponsesRequest, AModelWithoutToolsOrReasoningRefusesWhatItWouldHaveToBeTold) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"tools": [{"type": "function", "name": "f"}]})", "tools[0]"},
      {R"({"tools": [{"type": "namespace", "name": "n", "tools": [
           {"type": "custom", "name": "f"}]}]})",
       "tools[0].tools[0]"},
      {R"({"tool_choice": "required"})", "tool_choice"},
      {R"({"reasoning": {"effort": "low"}})", "reasoning.effort"},
      {R"({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]})",
       "input[0]"},
      {R"({"input": [{"type": "reasoning", "content": [
           {"type": "reasoning_text", "text": "x"}]}]})",
       "input[0]"},
  };
  for (const auto& [members, field] : cases)
    EXPECT_EQ(FieldOf(json::parse(members), kPlainLimits), field);
  Good({{"tools", {{{"type", "web_search"}}}}, {"reasoning", {{"effort", "none"}}}}, kPlainLimits);
}

TEST(ResponsesRequest, AConversationHasAMostOfItems) {
  RequestLimits limits = kLimits;
  limits.messages_max = 3;
  ResponsesContext context;
  context.response = [](const std::string&) {
    auto item = std::make_shared<ResponsesItem>();
    item->role = "user";
    return std::optional(ItemList{item, item, item});
  };
  EXPECT_EQ(Parse({{"previous_response_id", "x"}}, limits, context).status().field(), "input");
}

}  // namespace
}  // namespace plumb::api
