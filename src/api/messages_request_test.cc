// api/messages_request_test.cc
// Bodies of Messages: what they become, and by which field each fault is refused.
#include "api/messages_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>

#include "api/thinking_signature.h"

namespace plumb::api {
namespace {

using nlohmann::json;
using text::ChatMessage;
using text::ToolChoice;

constexpr text::ChatAbilities kAll{.tools = true, .reasoning = true, .guides = true};

base::Result<MessagesRequest> Parse(const json& body, text::ChatAbilities abilities = kAll,
                                    MessagesUse use = MessagesUse::kAnswer) {
  return ParseMessagesRequest(body.dump(), {.vocabulary_size = 100, .abilities = abilities}, use);
}

json Body(json members = json::object()) {
  json body = {
      {"model", "m"}, {"max_tokens", 5000}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  body.update(members);
  return body;
}

json Tool(std::string name, json members = json::object()) {
  json tool = {{"name", std::move(name)}, {"input_schema", {{"type", "object"}}}};
  tool.update(members);
  return tool;
}

json Use(std::string id) {
  return {{"type", "tool_use"}, {"id", std::move(id)}, {"name", "f"}, {"input", {{"a", 1}}}};
}

json ResultOf(std::string id, json content = "r") {
  return {{"type", "tool_result"}, {"tool_use_id", std::move(id)}, {"content", content}};
}

TEST(MessagesRequest, HasTheDefaultsOfItsDialect) {
  const MessagesRequest request = Parse(Body()).value();
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.tokens_max, 5000u);
  EXPECT_FALSE(request.stream);
  EXPECT_EQ(request.sampling.temperature, 1.0f);
  EXPECT_EQ(request.input.thinking, false);
  EXPECT_TRUE(request.show_thinking);
  EXPECT_FALSE(request.warm_only);
}

TEST(MessagesRequest, ReadsSampling) {
  const MessagesRequest request = Parse(Body({{"temperature", 0.25},
                                              {"top_p", 0.5},
                                              {"top_k", 7},
                                              {"stop_sequences", {"a", "b"}},
                                              {"seed", 11},
                                              {"stream", true},
                                              {"priority", "batch"}}))
                                      .value();
  EXPECT_EQ(request.sampling.temperature, 0.25f);
  EXPECT_EQ(request.sampling.top_p, 0.5f);
  EXPECT_EQ(request.sampling.top_k, 7u);
  EXPECT_EQ(request.sampling.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.sampling.seed, 11u);
  EXPECT_TRUE(request.seed_given);
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.priority, engine::Priority::kBatch);
}

TEST(MessagesRequest, PutsSystemInFrontWithoutBillingLines) {
  const json blocks = {{{"type", "text"}, {"text", "x-anthropic-billing-header: a; cch=1;"}},
                       {{"type", "text"}, {"text", "one"}},
                       {{"type", "text"}, {"text", "two"}}};
  const MessagesRequest request = Parse(Body({{"system", blocks}})).value();
  ASSERT_EQ(request.input.messages.size(), 2u);
  EXPECT_EQ(request.input.messages[0].role, "system");
  EXPECT_EQ(request.input.messages[0].content, "one\n\ntwo");
}

TEST(MessagesRequest, MakesMessagesOfTheirOwnOfResults) {
  const json messages = {{{"role", "user"}, {"content", "q"}},
                         {{"role", "assistant"},
                          {"content",
                           {{{"type", "thinking"}, {"thinking", "t"}, {"signature", "s"}},
                            {{"type", "text"}, {"text", "a"}},
                            Use("c1"),
                            Use("c2")}}},
                         {{"role", "user"},
                          {"content",
                           {{{"type", "text"}, {"text", "and"}},
                            ResultOf("c2", json::array({{{"type", "text"}, {"text", "r2"}}})),
                            ResultOf("c1")}}}};
  const MessagesRequest request = Parse(Body({{"messages", messages}})).value();
  const std::vector<ChatMessage>& got = request.input.messages;
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(got[1].content, "a");
  EXPECT_EQ(got[1].reasoning, "t");
  ASSERT_EQ(got[1].tool_calls.size(), 2u);
  EXPECT_EQ(got[1].tool_calls[0].arguments, R"({"a":1})");
  EXPECT_EQ(got[2].role, "tool");
  EXPECT_EQ(got[2].tool_call_id, "c2");
  EXPECT_EQ(got[2].content, "r2");
  EXPECT_EQ(got[3].tool_call_id, "c1");
  EXPECT_EQ(got[4].role, "user");
  EXPECT_EQ(got[4].content, "and");
}

TEST(MessagesRequest, TellsTheModelOfErrors) {
  json result = ResultOf("c1", "no such file");
  result["is_error"] = true;
  const json messages = {{{"role", "user"}, {"content", "q"}},
                         {{"role", "assistant"}, {"content", {Use("c1")}}},
                         {{"role", "user"}, {"content", {result}}}};
  const MessagesRequest request = Parse(Body({{"messages", messages}})).value();
  EXPECT_EQ(request.input.messages.back().content, "Error: no such file");
}

TEST(MessagesRequest, JoinsMessagesOfOneRole) {
  const json messages = {{{"role", "user"}, {"content", "a"}},
                         {{"role", "user"}, {"content", "b"}},
                         {{"role", "assistant"}, {"content", {Use("c1")}}},
                         {{"role", "assistant"}, {"content", {Use("c2")}}},
                         {{"role", "user"}, {"content", {ResultOf("c1")}}},
                         {{"role", "user"}, {"content", {ResultOf("c2")}}}};
  const MessagesRequest request = Parse(Body({{"messages", messages}})).value();
  ASSERT_EQ(request.input.messages.size(), 4u);
  EXPECT_EQ(request.input.messages[0].content, "a\n\nb");
  EXPECT_EQ(request.input.messages[1].tool_calls.size(), 2u);
}

TEST(MessagesRequest, TakesThinkingBackFromSignaturesOfOurs) {
  const json messages = {
      {{"role", "user"}, {"content", "a"}},
      {{"role", "assistant"},
       {"content",
        {{{"type", "thinking"}, {"thinking", ""}, {"signature", ThinkingSignature("hidden", true)}},
         {{"type", "text"}, {"text", "b"}}}}},
      {{"role", "user"}, {"content", "c"}}};
  EXPECT_EQ(Parse(Body({{"messages", messages}})).value().input.messages[1].reasoning, "hidden");
  const auto without = Parse(Body({{"messages", messages}}), {.tools = true, .reasoning = false});
  EXPECT_EQ(without.value().input.messages[1].reasoning, "");
}

TEST(MessagesRequest, PlacesSystemMessagesWhereTheModelKnowsThem) {
  const json messages = {{{"role", "user"}, {"content", "a"}},
                         {{"role", "system"}, {"content", "s"}},
                         {{"role", "user"}, {"content", "b"}}};
  const auto known = Parse(Body({{"messages", messages}})).value().input.messages;
  ASSERT_EQ(known.size(), 3u);
  EXPECT_EQ(known[1].role, "system");
  const auto folded = Parse(Body({{"messages", messages}}), {}).value().input.messages;
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded[0].content, "a\n\n<system>\ns\n</system>\n\nb");
}

TEST(MessagesRequest, OffersDeferredToolsOnceTheyAreLoaded) {
  const json tools = {Tool("a", {{"defer_loading", true}}), Tool("b"),
                      Tool("c", {{"defer_loading", true}})};
  const auto names = [](const MessagesRequest& request) {
    std::string all;
    for (const text::ToolSpec& tool : request.input.tools) all += tool.name;
    return all;
  };
  EXPECT_EQ(names(Parse(Body({{"tools", tools}})).value()), "b");
  const json reference = {{"type", "tool_reference"}, {"tool_name", "c"}};
  const json messages = {
      {{"role", "user"}, {"content", "a"}},
      {{"role", "assistant"}, {"content", {Use("c1")}}},
      {{"role", "user"}, {"content", {ResultOf("c1", json::array({reference}))}}}};
  const MessagesRequest loaded = Parse(Body({{"tools", tools}, {"messages", messages}})).value();
  EXPECT_EQ(names(loaded), "bc");
  EXPECT_EQ(loaded.input.messages.back().content, "The tool c can be called now.");
}

TEST(MessagesRequest, TellsToolsOfVendorsThatClientsRun) {
  for (const auto& [type, name] : {std::pair("bash_20250124", "bash"),
                                   std::pair("text_editor_20250728", "str_replace_based_edit_tool"),
                                   std::pair("memory_20250818", "memory")}) {
    const auto request = Parse(Body({{"tools", {{{"type", type}, {"name", name}}}}}));
    ASSERT_TRUE(request.ok()) << request.status().ToString();
    const text::ToolSpec& tool = request->input.tools.at(0);
    EXPECT_EQ(tool.name, name);
    EXPECT_FALSE(tool.description.empty());
    EXPECT_TRUE(json::parse(tool.parameters)["properties"].contains("command"));
  }
}

TEST(MessagesRequest, ReadsToolChoice) {
  const json tools = json::array({Tool("f")});
  const auto choose = [&](json choice) {
    return Parse(Body({{"tools", tools}, {"tool_choice", std::move(choice)}})).value().input;
  };
  EXPECT_EQ(choose({{"type", "auto"}}).tool_choice, ToolChoice::kAuto);
  EXPECT_EQ(choose({{"type", "none"}}).tool_choice, ToolChoice::kNone);
  const text::ChatInput any = choose({{"type", "any"}, {"disable_parallel_tool_use", true}});
  EXPECT_EQ(any.tool_choice, ToolChoice::kRequired);
  EXPECT_FALSE(any.parallel_tool_calls);
  EXPECT_EQ(any.thinking, false);
  const auto adaptive = Parse(Body({{"tools", tools},
                                    {"tool_choice", {{"type", "any"}}},
                                    {"output_config", {{"effort", "high"}}},
                                    {"thinking", {{"type", "adaptive"}}}}));
  EXPECT_EQ(adaptive.value().input.thinking, false);
  const text::ChatInput named = choose({{"type", "tool"}, {"name", "f"}});
  EXPECT_EQ(named.tool_choice, ToolChoice::kNamed);
  EXPECT_EQ(named.tool_name, "f");
  EXPECT_TRUE(named.parallel_tool_calls);
}

TEST(MessagesRequest, ReadsThinkingAndEffort) {
  const auto input = [](json members) { return Parse(Body(std::move(members))).value().input; };
  const json adaptive = {{"type", "adaptive"}};
  EXPECT_EQ(input({{"thinking", adaptive}}).thinking, std::nullopt);
  EXPECT_EQ(input({{"thinking", {{"type", "disabled"}}}}).thinking, false);
  const text::ChatInput little =
      input({{"thinking", {{"type", "enabled"}, {"budget_tokens", 1024}}}});
  EXPECT_EQ(little.thinking, true);
  EXPECT_EQ(little.effort, "low");
  const text::ChatInput said = input({{"thinking", {{"type", "enabled"}, {"budget_tokens", 1024}}},
                                      {"output_config", {{"effort", "max"}}}});
  EXPECT_EQ(said.effort, "max");
  const json turn = {
      {{"role", "user"}, {"content", "a"}},
      {{"role", "system"}, {"content", "s"}, {"output_config", {{"effort", "low"}}}}};
  EXPECT_EQ(
      input({{"thinking", adaptive}, {"output_config", {{"effort", "max"}}}, {"messages", turn}})
          .effort,
      "low");
  EXPECT_FALSE(Parse(Body({{"thinking", {{"type", "adaptive"}, {"display", "omitted"}}}}))
                   .value()
                   .show_thinking);
}

TEST(MessagesRequest, ReadsAFormat) {
  const json schema = {{"type", "object"}};
  const auto request =
      Parse(Body({{"output_config", {{"format", {{"type", "json_schema"}, {"schema", schema}}}}}}));
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  EXPECT_EQ(request->grammar->kind, text::GrammarKind::kJsonSchema);
  EXPECT_EQ(request->grammar->source, schema.dump());
  EXPECT_EQ(request->input.response_schema, schema.dump());
}

TEST(MessagesRequest, CountsWithoutMaxTokens) {
  json body = Body();
  body.erase("max_tokens");
  EXPECT_TRUE(Parse(body, kAll, MessagesUse::kCount).ok());
  EXPECT_EQ(Parse(body).status().field(), "max_tokens");
}

TEST(MessagesRequest, WarmsWithoutAnAnswer) {
  const MessagesRequest request = Parse(Body({{"max_tokens", 0}})).value();
  EXPECT_TRUE(request.warm_only);
  EXPECT_EQ(request.tokens_max, 1u);
}

struct Refusal {
  json members;
  std::string field;
};

void ExpectRefused(std::span<const Refusal> refusals) {
  for (const Refusal& refusal : refusals) {
    const auto request = Parse(Body(refusal.members));
    ASSERT_FALSE(request.ok()) << refusal.members.dump();
    EXPECT_EQ(request.status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(request.status().field(), refusal.field) << refusal.members.dump();
  }
}

TEST(MessagesRequest, RefusesNumbersAndNamesByTheFieldAtFault) {
  const Refusal refusals[] = {
      {{{"model", 1}}, "model"},
      {{{"model", ""}}, "model"},
      {{{"max_tokens", -1}}, "max_tokens"},
      {{{"max_tokens", "1"}}, "max_tokens"},
      {{{"max_tokens", 1.5}}, "max_tokens"},
      {{{"temperature", 1.01}}, "temperature"},
      {{{"temperature", -0.1}}, "temperature"},
      {{{"top_p", 2}}, "top_p"},
      {{{"top_k", -1}}, "top_k"},
      {{{"stream", "yes"}}, "stream"},
      {{{"n", 2}}, "n"},
      {{{"logprobs", true}}, "logprobs"},
      {{{"min_p", 0.1}}, "min_p"},
      {{{"stop_sequences", json(std::vector<std::string>(17, "x"))}}, "stop_sequences"},
  };
  ExpectRefused(refusals);
}

TEST(MessagesRequest, RefusesMessagesByTheFieldAtFault) {
  const json user = {{"role", "user"}, {"content", "hi"}};
  const auto content = [&](json block) {
    return json{{"messages", {{{"role", "user"}, {"content", {std::move(block)}}}}}};
  };
  const json pdf = {{"type", "base64"}, {"media_type", "application/pdf"}, {"data", "AAAA"}};
  const Refusal refusals[] = {
      {{{"system", 1}}, "system"},
      {{{"system", {{{"type", "image"}}}}}, "system[0].type"},
      {{{"system", {{{"type", "text"}, {"text", "a"}, {"x", 1}}}}}, "system[0].x"},
      {{{"messages", "hi"}}, "messages"},
      {{{"messages", json::array()}}, "messages"},
      {{{"messages", {1}}}, "messages[0]"},
      {{{"messages", {{{"role", "tool"}, {"content", "a"}}}}}, "messages[0].role"},
      {{{"messages", {{{"role", "user"}}}}}, "messages[0].content"},
      {{{"messages", {{{"role", "user"}, {"content", json::array()}}}}}, "messages[0].content"},
      {{{"messages", {{{"role", "user"}, {"content", "a"}, {"name", "b"}}}}}, "messages[0].name"},
      {{{"messages", {user, {{"role", "assistant"}, {"content", {Use("a"), Use("a")}}}}}},
       "messages[1].content"},
      {{{"messages", {user, {{"role", "assistant"}, {"content", {Use("a")}}}}}}, "messages"},
      {{{"messages", {user, {{"role", "assistant"}, {"content", {ResultOf("a")}}}}}},
       "messages[1].content[0].type"},
      {content(Use("a")), "messages[0].content[0].type"},
      {content({{"type", "server_tool_use"}}), "messages[0].content[0].type"},
      {content({{"text", "a"}}), "messages[0].content[0].type"},
      {content({{"type", "text"}, {"text", 1}}), "messages[0].content[0].text"},
      {content({{"type", "image"}}), "messages[0].content[0].source"},
      {content({{"type", "image"}, {"source", {{"type", "file"}, {"file_id", "f"}}}}),
       "messages[0].content[0].source.type"},
      {content({{"type", "document"}, {"source", pdf}}), "messages[0].content[0].source.type"},
      {content({{"type", "document"},
                {"source", {{"type", "text"}, {"data", "a"}}},
                {"citations", {{"enabled", true}}}}),
       "messages[0].content[0].citations"},
  };
  ExpectRefused(refusals);
}

TEST(MessagesRequest, RefusesToolsAndOutputByTheFieldAtFault) {
  const Refusal refusals[] = {
      {{{"tools", {{{"name", "f"}}}}}, "tools[0].input_schema"},
      {{{"tools", {Tool("f", {{"input_schema", "{}"}})}}}, "tools[0].input_schema"},
      {{{"tools", {Tool("")}}}, "tools[0].name"},
      {{{"tools", {Tool(std::string(65, 'x'))}}}, "tools[0].name"},
      {{{"tools", {Tool("a b")}}}, "tools[0].name"},
      {{{"tools", {Tool("f"), Tool("f")}}}, "tools[1].name"},
      {{{"tools", {Tool("f", {{"input_examples", json::array()}})}}}, "tools[0].input_examples"},
      {{{"tools", {Tool("f", {{"type", "web_search_20250305"}})}}}, "tools[0].type"},
      {{{"tools", {{{"type", "bash_2025"}, {"name", "bash"}}}}}, "tools[0].type"},
      {{{"tools", {Tool("f", {{"allowed_callers", {"code_execution_20250825"}}})}}},
       "tools[0].allowed_callers"},
      {{{"tool_choice", "auto"}}, "tool_choice"},
      {{{"tool_choice", {{"type", "required"}}}}, "tool_choice.type"},
      {{{"tool_choice", {{"type", "tool"}}}}, "tool_choice.name"},
      {{{"tool_choice", {{"type", "auto"}, {"name", "f"}}}}, "tool_choice.name"},
      {{{"tool_choice", {{"type", "any"}}}}, "tool_choice"},
      {{{"thinking", true}}, "thinking"},
      {{{"thinking", {{"type", "between_tools"}}}}, "thinking.type"},
      {{{"thinking", {{"type", "adaptive"}, {"display", "all"}}}}, "thinking.display"},
      {{{"output_config", {{"task_budget", 1}}}}, "output_config.task_budget"},
      {{{"output_config", {{"effort", "VERY"}}}}, "output_config.effort"},
      {{{"output_format", {{"type", "json_schema"}}}}, "output_format.schema"},
      {{{"output_config",
         {{"format", {{"type", "json_schema"}, {"schema", {{"type", "object"}}}}}}},
        {"tools", {Tool("f")}}},
       "output_config.format"},
      {{{"metadata", {{"user_id", 1}}}}, "metadata.user_id"},
      {{{"service_tier", "flex"}}, "service_tier"},
      {{{"speed", "slow"}}, "speed"},
      {{{"container", "c"}}, "container"},
      {{{"thread", {{"type", "create"}}}}, "thread"},
      {{{"inference_geo", "us"}}, "inference_geo"},
      {{{"context_management", {{"edits", {{{"type", "compact_20260112"}}}}}}},
       "context_management.edits[0].type"},
  };
  ExpectRefused(refusals);
}

// Whatever is null counts as absent, as in the other dialects.
// Where a request's marks are: the message, the bytes of it before, and the minutes.
struct Place {
  size_t message;
  size_t bytes;
  int64_t minutes;
  bool operator==(const Place&) const = default;
};
constexpr size_t kEnd = SIZE_MAX;  // of the prompt

std::vector<Place> MarksOf(const json& body) {
  std::vector<Place> places;
  const MessagesRequest request = Parse(body).value();
  for (const CacheMark& mark : request.cache_marks) {
    const text::ConversationPlace at = mark.place.value_or(text::ConversationPlace{kEnd, 0});
    places.push_back({at.message, at.bytes, mark.time.ms() / 60'000});
  }
  return places;
}

json Marked(json block, const char* ttl = "5m") {
  block["cache_control"] = {{"type", "ephemeral"}, {"ttl", ttl}};
  return block;
}

json Text(const char* text) { return {{"type", "text"}, {"text", text}}; }

TEST(MessagesRequest, KnowsWhereAMarkedBlockEnds) {
  using Places = std::vector<Place>;
  EXPECT_EQ(MarksOf(Body()), Places());
  EXPECT_EQ(MarksOf(Body({{"cache_control", {{"type", "ephemeral"}}}})), Places({{kEnd, 0, 5}}));
  EXPECT_EQ(MarksOf(Body({{"tools", {Marked(Tool("f")), Tool("g")}}})), Places({{0, 0, 5}}));
  const json system = {Text("x-anthropic-billing-header: a\nb"), Marked(Text("cd"), "1h"),
                       Text("e")};
  EXPECT_EQ(MarksOf(Body({{"system", system}, {"tools", {Marked(Tool("f"))}}})),
            Places({{0, 5, 60}}));
  const auto said = [](json content) {
    return json{{{"role", "user"}, {"content", "q"}}, {{"role", "user"}, {"content", content}}};
  };
  // Joined to what was said before, with an empty line between.
  EXPECT_EQ(MarksOf(Body({{"messages", said({Text("ab"), Marked(Text("cd")), Text("e")})}})),
            Places({{0, 9, 5}}));
  EXPECT_EQ(MarksOf(Body({{"system", "s"}, {"messages", said({Marked(Text("ab"))})}})),
            Places({{1, 5, 5}}));
}

TEST(MessagesRequest, KnowsWhereMarkedCallsAndResultsEnd) {
  using Places = std::vector<Place>;
  const auto talk = [](json called, json results) {
    return Body({{"messages",
                  {{{"role", "user"}, {"content", "q"}},
                   {{"role", "assistant"}, {"content", called}},
                   {{"role", "user"}, {"content", results}}}}});
  };
  const json results = {ResultOf("c1"), ResultOf("c2", "long"), Text("t")};
  // Behind a call, and so behind all of the message.
  EXPECT_EQ(MarksOf(talk({Text("a"), Marked(Use("c1")), Use("c2")}, results)), Places({{2, 0, 5}}));
  EXPECT_EQ(MarksOf(talk({Marked(Text("abc")), Use("c1"), Use("c2")}, results)),
            Places({{1, 3, 5}}));
  const json calls = {Use("c1"), Use("c2")};
  EXPECT_EQ(MarksOf(talk(calls, {Marked(ResultOf("c1")), ResultOf("c2"), Text("t")})),
            Places({{2, 1, 5}}));
  const json inner = {Text("long"), Marked(Text("er"), "1h")};
  EXPECT_EQ(MarksOf(talk(calls, {ResultOf("c1"), ResultOf("c2", inner), Marked(Text("t"))})),
            Places({{3, 8, 60}, {4, 1, 5}}));
}

TEST(MessagesRequest, TakesFourMarksAtMost) {
  json system = {Marked(Text("a")), Marked(Text("b")), Marked(Text("c"))};
  EXPECT_TRUE(Parse(Body({{"system", system}, {"tools", {Marked(Tool("f"))}}})).ok());
  const auto five = Parse(Body({{"system", system},
                                {"tools", {Marked(Tool("f"))}},
                                {"cache_control", {{"type", "ephemeral"}}}}));
  ASSERT_FALSE(five.ok());
  EXPECT_EQ(five.status().code(), base::Code::kInvalidArgument);
  EXPECT_EQ(five.status().message(),
            "a maximum of 4 blocks with cache_control may be provided; found 5");
}

TEST(MessagesRequest, TakesNullForAbsent) {
  for (const char* name :
       {"system",      "stream",       "stop_sequences", "temperature",   "top_p",
        "top_k",       "tools",        "tool_choice",    "thinking",      "output_config",
        "metadata",    "service_tier", "cache_control",  "container",     "context_management",
        "mcp_servers", "speed",        "diagnostics",    "inference_geo", "seed"}) {
    const auto request = Parse(Body({{name, nullptr}}));
    EXPECT_TRUE(request.ok()) << name << ": " << request.status().ToString();
  }
}

}  // namespace
}  // namespace plumb::api
