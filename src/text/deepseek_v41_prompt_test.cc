// text/deepseek_v41_prompt_test.cc
// What the goldens (tests/golden/v41/chat) do not show: what is refused, and by which field; which
// segments are ours; corners where this program had to choose.
#include "text/deepseek_v41_prompt.h"

#include <gtest/gtest.h>

namespace plumb::text {
namespace {

ChatMessage User(std::string content) { return {.role = "user", .content = std::move(content)}; }
ChatMessage Assistant(std::string content) {
  return {.role = "assistant", .content = std::move(content)};
}
ChatMessage Calls(std::vector<ToolCall> calls) {
  ChatMessage message = Assistant("");
  message.tool_calls = std::move(calls);
  return message;
}
ChatMessage Result(std::string id, std::string content) {
  ChatMessage message{.role = "tool", .content = std::move(content)};
  message.tool_call_id = std::move(id);
  return message;
}
ToolSpec Tool(std::string name, std::string parameters = "{}", bool strict = false) {
  return {std::move(name), "", std::move(parameters), strict};
}
ChatInput Chat(std::vector<ChatMessage> messages) {
  ChatInput input{.messages = std::move(messages)};
  input.thinking = false;
  return input;
}

std::string Rendered(const ChatInput& input) {
  const auto prompt = RenderDeepseekV41(input);
  if (!prompt.ok()) return prompt.status().ToString();
  std::string text;
  for (const PromptSegment& segment : prompt->segments) text += segment.text;
  return text;
}
// Without what every prompt begins with.
std::string Body(const ChatInput& input) {
  constexpr std::string_view kBegin = "<｜begin▁of▁sentence｜>";
  const std::string text = Rendered(input);
  return text.starts_with(kBegin) ? text.substr(kBegin.size()) : text;
}
std::string FieldOf(const ChatInput& input) {
  const auto prompt = RenderDeepseekV41(input);
  return prompt.ok() ? "ok" : prompt.status().field();
}

TEST(DeepseekV41Prompt, RefusesByField) {
  const ToolCall call{"c1", "f", "{}"};
  ChatInput prefix = Chat({User("a"), Assistant("b"), User("c")});
  prefix.messages[1].prefix = true;
  ChatInput prefix_and_tools = Chat({User("a"), Assistant("b")});
  prefix_and_tools.messages[1].prefix = true;
  prefix_and_tools.tools = {Tool("f")};
  ChatInput task = Chat({User("a")});
  task.messages[0].task = "sing";
  const std::pair<ChatInput, const char*> cases[] = {
      {Chat({}), "messages"},
      {Chat({{.role = "owner", .content = ""}}), "messages[0].role"},
      {Chat({User("a"), Result("c1", "x")}), "messages[1].role"},
      {Chat({User("a"), Calls({call})}), "messages[1].tool_calls"},
      {Chat({User("a"), Calls({call}), User("b")}), "messages[1].tool_calls"},
      {Chat({User("a"), Calls({call}), Result("c2", "x")}), "messages[2].tool_call_id"},
      {Chat({User("a"), Calls({call}), Result("c1", "x"), Result("c1", "y")}),
       "messages[3].tool_call_id"},
      {Chat({User("a"), Calls({call, {"c2", "f", "{}"}}), Result("c2", "x")}),
       "messages[1].tool_calls"},
      {Chat({User("a"), Calls({call, call}), Result("c1", "x"), Result("c1", "x")}),
       "messages[1].tool_calls"},
      {Chat({User("a"), Calls({{"", "f", "{}"}}), Result("", "x")}), "messages[1].tool_calls"},
      {Chat({User("a"), Calls({{"c1", "f g", "{}"}}), Result("c1", "x")}),
       "messages[1].tool_calls[0].function.name"},
      {Chat({User("a"), Calls({{"c1", "f", std::string(100, '[')}}), Result("c1", "x")}),
       "messages[1].tool_calls[0].function.arguments"},
      {prefix, "messages[1].prefix"},
      {prefix_and_tools, "messages[1].prefix"},
      {task, "messages[0].task"},
  };
  for (const auto& [input, field] : cases) EXPECT_EQ(FieldOf(input), field) << Rendered(input);
}

TEST(DeepseekV41Prompt, RefusesToolsAndChoicesByField) {
  ChatInput input = Chat({User("a")});
  const auto with = [&](std::vector<ToolSpec> tools, ToolChoice choice, std::string name = "") {
    ChatInput changed = input;
    changed.tools = std::move(tools);
    changed.tool_choice = choice;
    changed.tool_name = std::move(name);
    return changed;
  };
  EXPECT_EQ(FieldOf(with({Tool("f"), Tool("a b")}, ToolChoice::kAuto)), "tools[1].function.name");
  EXPECT_EQ(FieldOf(with({Tool(std::string(65, 'a'))}, ToolChoice::kAuto)),
            "tools[0].function.name");
  EXPECT_EQ(FieldOf(with({Tool("f", "[]")}, ToolChoice::kAuto)), "tools[0].function.parameters");
  EXPECT_EQ(FieldOf(with({Tool("f", "{")}, ToolChoice::kAuto)), "tools[0].function.parameters");
  EXPECT_EQ(FieldOf(with({}, ToolChoice::kRequired)), "tool_choice");
  EXPECT_EQ(FieldOf(with({Tool("f")}, ToolChoice::kNamed, "g")), "tool_choice.function.name");
  input.effort = "none";
  EXPECT_EQ(FieldOf(with({Tool("f")}, ToolChoice::kNamed, "f")), "ok");
  input.response_schema = "{";
  EXPECT_EQ(FieldOf(input), "response_format");
}

TEST(DeepseekV41Prompt, EffortIsANameOrANumber) {
  for (const char* effort : {"0", "101", "-1", "1.5", "", "HIGH", "7 ", "99999999999"})
    EXPECT_FALSE(DeepseekEffort(effort)) << effort;
  EXPECT_EQ(DeepseekEffort("1"), 1u);
  EXPECT_EQ(DeepseekEffort("100"), 100u);
  EXPECT_EQ(DeepseekEffort("minimal"), 50u);
  EXPECT_EQ(DeepseekEffort("max"), 100u);
  ChatInput input = Chat({User("a")});
  input.effort = "loud";
  EXPECT_EQ(FieldOf(input), "reasoning_effort");
}

TEST(DeepseekV41Prompt, ThinksUnlessToldNotTo) {
  ChatInput input{.messages = {User("a")}};
  EXPECT_EQ(RenderDeepseekV41(input)->start, AnswerStart::kReasoning);
  input.effort = "none";
  EXPECT_EQ(RenderDeepseekV41(input)->start, AnswerStart::kContent);
  input.thinking = true;
  EXPECT_EQ(RenderDeepseekV41(input)->start, AnswerStart::kReasoning);
}

TEST(DeepseekV41Prompt, OnlyOurWordsAreTemplate) {
  ChatInput input = Chat({{.role = "system", .content = "<｜User｜>"},
                          User("</think>"),
                          Calls({{"c1", "f", R"({"｜DSML｜":"<think>"})"}}),
                          Result("c1", "<｜Assistant｜>")});
  input.messages[2].reasoning = "<｜System｜>";
  input.tools = {Tool("f", R"({"<｜title｜>":1})")};
  input.tools[0].description = "<｜end▁of▁sentence｜>";
  input.response_schema = R"({"a":"<｜action｜>"})";
  input.thinking = true;
  const auto prompt = RenderDeepseekV41(input);
  ASSERT_TRUE(prompt.ok());
  std::string ours, given;
  for (const PromptSegment& segment : prompt->segments)
    (segment.kind == PromptSegment::Kind::kTemplate ? ours : given) += segment.text;
  for (const char* special :
       {"<｜User｜>", "</think>", "｜DSML｜", "<think>", "<｜Assistant｜>", "<｜System｜>",
        "<｜title｜>", "<｜end▁of▁sentence｜>", "<｜action｜>"})
    EXPECT_NE(given.find(special), given.npos) << special;
  EXPECT_EQ(ours.find("<｜title｜>"), ours.npos);
  EXPECT_EQ(ours.find("<｜action｜>"), ours.npos);
}

TEST(DeepseekV41Prompt, StrictHoldsInEverySchemaInside) {
  ChatInput input = Chat({User("a")});
  input.tools = {Tool("f",
                      R"({"type":"object","required":["b"],"properties":{"a":{"type":"array",)"
                      R"("items":{"type":"object","properties":{"c":{}}}},"b":{"anyOf":[)"
                      R"({"type":"object"},{"type":"null"}]}}})",
                      true)};
  EXPECT_NE(Rendered(input).find(
                R"({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": )"
                R"("array", "items": {"type": "object", "properties": {"c": {}}, )"
                R"("additionalProperties": false, "required": ["c"]}}, "b": {"anyOf": [{"type": )"
                R"("object", "additionalProperties": false}, {"type": "null"}]}}, )"
                R"("additionalProperties": false})"),
            std::string::npos)
      << Rendered(input);
}

// A map could only ever be empty there; every place where a schema may stand is looked at.
TEST(DeepseekV41Prompt, StrictRefusesMembersWithoutNames) {
  const auto field = [](const std::string& parameters, bool strict) {
    ChatInput input = Chat({User("a")});
    input.tools = {Tool("f", parameters, strict)};
    return FieldOf(input);
  };
  const std::string map = R"({"type":"object","additionalProperties":{"type":"string"}})";
  const std::string named = R"({"type":"object","additionalProperties":false})";
  const std::pair<std::string, std::string> places[] = {
      {"@", ""},
      {R"({"properties":{"m":@}})", ".properties.m"},
      {R"({"patternProperties":{"^x":@}})", ".patternProperties.^x"},
      {R"({"$defs":{"m":@}})", ".$defs.m"},
      {R"({"items":@})", ".items"},
      {R"({"prefixItems":[{},@]})", ".prefixItems[1]"},
      {R"({"anyOf":[@]})", ".anyOf[0]"},
      {R"({"oneOf":[{"items":@}]})", ".oneOf[0].items"},
      {R"({"if":{},"then":@})", ".then"},
      {R"({"if":{},"else":@})", ".else"},
  };
  for (const auto& [form, path] : places) {
    SCOPED_TRACE(form);
    const auto with = [at = form.find('@'), form = form](const std::string& schema) {
      return std::string(form).replace(at, 1, schema);
    };
    EXPECT_EQ(field(with(map), true),
              "tools[0].function.parameters" + path + ".additionalProperties");
    EXPECT_EQ(field(with(map), false), "ok");
    EXPECT_EQ(field(with(named), true), "ok");
  }
  // What a value must not be becomes no stricter.
  EXPECT_EQ(field(R"({"not":)" + map + "}", true), "ok");
}

TEST(DeepseekV41Prompt, TasksTakeThePlaceOfTheHeader) {
  ChatInput input = Chat({User("a")});
  input.messages[0].task = "query";
  EXPECT_EQ(Body(input), "<｜User｜>a<｜query｜>");
  input.messages.push_back(Assistant("q"));
  input.messages.push_back(User("b"));
  EXPECT_EQ(Body(input),
            "<｜User｜>a<｜query｜>q<｜end▁of▁sentence｜><｜User｜>b<｜Assistant｜></think>");
  input.messages.erase(input.messages.begin() + 1);
  EXPECT_EQ(Body(input), "<｜User｜>a<｜query｜><｜User｜>b<｜Assistant｜></think>");
}

// After a reminder a user may go on (then an empty answer's header stands before it, as in the
// official encoder) or the model (then none does, as in deepseek-recipe).
TEST(DeepseekV41Prompt, RemindersStandBeforeAnAnswerOrAUser) {
  const ChatMessage reminder{.role = "latest_reminder", .content = "R"};
  EXPECT_EQ(
      Body(Chat({User("a"), reminder, User("b")})),
      "<｜User｜>a<｜Assistant｜></think><｜latest_reminder｜>R<｜User｜>b<｜Assistant｜></think>");
  EXPECT_EQ(
      Body(Chat({User("a"), reminder, Assistant("b"), User("c")})),
      "<｜User｜>a<｜latest_reminder｜>R<｜Assistant｜></think>b<｜end▁of▁sentence｜><｜User｜>c"
      "<｜Assistant｜></think>");
  EXPECT_EQ(Body(Chat({reminder, User("b")})),
            "<｜latest_reminder｜>R<｜User｜>b<｜Assistant｜></think>");
}

TEST(DeepseekV41Prompt, ToolChoiceNoneIsAsWithoutTools) {
  ChatInput input = Chat({User("a")});
  const std::string without = Rendered(input);
  input.tools = {Tool("f")};
  input.tool_choice = ToolChoice::kNone;
  EXPECT_EQ(Rendered(input), without);
  EXPECT_FALSE(RenderDeepseekV41(input)->calls);
}

TEST(DeepseekV41Prompt, APrefixSaysWhereTheAnswerGoesOn) {
  ChatInput input = Chat({User("a"), Assistant("")});
  input.messages[1].prefix = true;
  input.messages[1].reasoning = "so";
  input.thinking = true;
  auto prompt = RenderDeepseekV41(input).value();
  EXPECT_EQ(prompt.start, AnswerStart::kReasoning);
  EXPECT_TRUE(prompt.continues);
  input.messages[1].content = "b";
  prompt = RenderDeepseekV41(input).value();
  EXPECT_EQ(prompt.start, AnswerStart::kContent);
  EXPECT_TRUE(prompt.continues);
}

// A call that must come comes at once where nobody asked to think, and behind the reasoning else.
TEST(DeepseekV41Prompt, ACallThatMustComeWaitsForReasoning) {
  ChatInput input{.messages = {{"user", "hi"}}, .tools = {Tool("f")}};
  input.tool_choice = ToolChoice::kRequired;
  EXPECT_EQ(RenderDeepseekV41(input)->start, AnswerStart::kCalls);
  input.effort = "high";
  EXPECT_EQ(RenderDeepseekV41(input)->start, AnswerStart::kReasoning);
  input.effort = "";
  input.reasoning_tokens_max = 9;
  EXPECT_EQ(RenderDeepseekV41(input)->start, AnswerStart::kReasoning);
  input.reasoning_tokens_max.reset();
  input.thinking = true;
  const auto rendered = RenderDeepseekV41(input);
  EXPECT_EQ(rendered->start, AnswerStart::kReasoning);
  EXPECT_TRUE(rendered->segments.back().text.ends_with("<｜Assistant｜><think>"));
}

}  // namespace
}  // namespace plumb::text
