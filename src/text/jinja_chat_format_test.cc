// text/jinja_chat_format_test.cc
// What a template's model is told of tools and thinking, and where its answer then begins. Real
// templates: tests/golden/template.
#include "text/jinja_chat_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "text/grammar_testing.h"

namespace plumb::text {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kTemplate =
    "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}{% for m in messages %}"
    "<|im_start|>{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n"
    "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n"
    "</tool_call>{% endfor %}<|im_end|>{% endfor %}<|im_start|>assistant:"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}";

class JinjaChatFormatTest : public ::testing::Test {
 protected:
  std::unique_ptr<JinjaChatFormat> Format(std::string source, const ToolFormat& tools = {}) {
    auto compiled = ChatTemplate::Compile(source, {});
    return JinjaChatFormat::Create(std::move(compiled).value(), *tokenizer_, tools).value();
  }
  ChatPrompt Prompt(const ChatInput& input, std::string source = std::string(kTemplate)) {
    auto prompt = Format(std::move(source))->Encode(input, 10'000);
    EXPECT_TRUE(prompt.ok()) << prompt.status().ToString();
    return prompt.ok() ? *prompt : ChatPrompt{};
  }
  std::string FieldOf(const ChatInput& input) {
    return Format(std::string(kTemplate))->Encode(input, 10'000).status().field();
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = testing::MakeGrammarTokenizer();
};

ChatInput Asks() {
  ChatInput input{.messages = {{"user", "hi"}}};
  input.tools = {{.name = "f", .description = "d", .parameters = R"({"type": "object"})"}};
  return input;
}

TEST_F(JinjaChatFormatTest, ToolsAndCallsAreForTheTemplate) {
  ChatInput input = Asks();
  ChatMessage calls{.role = "assistant", .content = ""};
  calls.tool_calls = {{.id = "c", .name = "f", .arguments = R"({"b": 1, "a": "<|im_end|>"})"}};
  ChatMessage result{.role = "tool", .content = "2"};
  result.tool_call_id = "c";
  input.messages.push_back(calls);
  input.messages.push_back(result);
  const ChatPrompt prompt = Prompt(input);
  EXPECT_THAT(prompt.text,
              HasSubstr(R"({"type": "function", "function": {"name": "f", "description": "d", )"
                        R"("parameters": {"type": "object"}}})"));
  EXPECT_THAT(prompt.text, HasSubstr(R"({"name": "f", "arguments": {"b": 1, "a": "<|im_end|>"}})"));
  EXPECT_TRUE(prompt.calls);
  // Each turn ends once; what the arguments spell is text.
  EXPECT_EQ(std::ranges::count(prompt.tokens, *tokenizer_->eos()), 3);

  input.tool_choice = ToolChoice::kNone;
  EXPECT_THAT(Prompt(input).text, Not(HasSubstr("function")));
  EXPECT_FALSE(Prompt(input).calls);
}

TEST_F(JinjaChatFormatTest, ThinkingIsDecidedWhereItMustBe) {
  ChatInput input = Asks();
  const auto starts = [&](const ChatInput& asked, AnswerStart start, bool may_think) {
    const ChatPrompt prompt = Prompt(asked);
    return prompt.start == start && prompt.may_think == may_think &&
           prompt.text.ends_with("<think>\n") == (start == AnswerStart::kReasoning);
  };
  EXPECT_TRUE(starts(input, AnswerStart::kContent, true)) << "as the model likes";
  for (const bool thinks : {true, false}) {
    const AnswerStart start = thinks ? AnswerStart::kReasoning : AnswerStart::kContent;
    ChatInput asked = input;
    asked.thinking = thinks;
    EXPECT_TRUE(starts(asked, start, false));
    asked.thinking.reset();
    asked.effort = thinks ? "low" : "none";
    EXPECT_TRUE(starts(asked, start, false));
  }
  ChatInput asked = input;
  asked.tool_choice = ToolChoice::kRequired;
  EXPECT_TRUE(starts(asked, AnswerStart::kContent, false)) << "a call that must come";
  asked.reasoning_tokens_max = 5;
  EXPECT_TRUE(starts(asked, AnswerStart::kReasoning, false)) << "a budget asks for it";
  EXPECT_EQ(Prompt(asked).grammar->begin, "</think>");
  asked = input;
  asked.tools[0].strict = true;
  EXPECT_TRUE(starts(asked, AnswerStart::kReasoning, false)) << "calls are held to schemas";
}

// A template without a switch: the prompt itself closes the reasoning that it has opened.
TEST_F(JinjaChatFormatTest, ReasoningThatATemplateOpensCanBeOff) {
  ChatInput input{.messages = {{"user", "hi"}}};
  const std::string opens = "{{ messages[0].content }}{# </think> #}{{ '<think>\n' }}";
  EXPECT_EQ(Prompt(input, opens).start, AnswerStart::kReasoning);
  input.thinking = false;
  EXPECT_EQ(Prompt(input, opens).start, AnswerStart::kContent);
  EXPECT_THAT(Prompt(input, opens).text, ::testing::EndsWith("<think>\n\n</think>\n\n"));
}

TEST_F(JinjaChatFormatTest, RefusesByPlace) {
  ChatInput input = Asks();
  input.tools[0].name = "a b";
  EXPECT_EQ(FieldOf(input), "tools[0].function.name");
  input = Asks();
  input.tools[0].parameters = "[]";
  EXPECT_EQ(FieldOf(input), "tools[0].function.parameters");
  input = Asks();
  input.tool_choice = ToolChoice::kNamed;
  input.tool_name = "g";
  EXPECT_EQ(FieldOf(input), "tool_choice.function.name");
  input.tools.clear();
  EXPECT_EQ(FieldOf(input), "tool_choice");
  input = Asks();
  input.effort = "loud";
  EXPECT_EQ(FieldOf(input), "reasoning_effort");
  input = Asks();
  ChatMessage calls{.role = "assistant", .content = ""};
  calls.tool_calls = {{.id = "c", .name = "f", .arguments = std::string(2000, '[')}};
  input.messages.push_back(calls);
  EXPECT_EQ(FieldOf(input), "messages[1].tool_calls[0].function.arguments");
}

// As in models whose chat template is a list of named ones: "default" knows nothing of tools.
TEST_F(JinjaChatFormatTest, AnotherTemplateIsForConversationsWithTools) {
  const auto compile = [](std::string_view source) {
    return ChatTemplate::Compile(source, {}).value();
  };
  constexpr std::string_view kPlain =
      "{% for m in messages %}plain {{ m.role }}:{{ m.content }}\n{% endfor %}";
  const auto format =
      JinjaChatFormat::Create(compile(kPlain), *tokenizer_, {}, compile(kTemplate)).value();
  EXPECT_TRUE(format->abilities().tools);
  EXPECT_TRUE(format->abilities().reasoning);
  EXPECT_NE(format->id(), JinjaChatFormat::Create(compile(kPlain), *tokenizer_).value()->id());
  EXPECT_NE(format->id(), JinjaChatFormat::Create(compile(kTemplate), *tokenizer_).value()->id());

  ChatInput plain{.messages = {{"user", "hi"}}};
  const ChatPrompt unasked = format->Encode(plain, 10'000).value();
  EXPECT_EQ(unasked.text, "plain user:hi\n");
  EXPECT_FALSE(unasked.calls);
  EXPECT_TRUE(unasked.reasoning_ends.empty()) << "that template does not reason";
  ChatInput unused = Asks();
  unused.tool_choice = ToolChoice::kNone;
  EXPECT_EQ(format->Encode(unused, 10'000).value().text, unasked.text);

  const auto alone = Format(std::string(kTemplate));
  ChatInput earlier = plain;  // nothing may be left out of a conversation that had tools
  ChatMessage call{.role = "assistant", .content = ""};
  call.tool_calls = {{.id = "c", .name = "f", .arguments = "{}"}};
  earlier.messages.push_back(call);
  for (const ChatInput& input : {Asks(), earlier}) {
    const ChatPrompt prompt = format->Encode(input, 10'000).value();
    const ChatPrompt expected = alone->Encode(input, 10'000).value();
    EXPECT_EQ(prompt.text, expected.text);
    EXPECT_EQ(prompt.tokens, expected.tokens);
    EXPECT_EQ(prompt.calls, expected.calls);
    EXPECT_FALSE(prompt.reasoning_ends.empty());
  }
  plain.tool_choice = ToolChoice::kRequired;
  EXPECT_EQ(format->Encode(plain, 10'000).status().field(), "tool_choice");
}

TEST_F(JinjaChatFormatTest, AToolFormatCanBeChosenWhereToolsAreShown) {
  EXPECT_TRUE(Format(std::string(kTemplate))->abilities().tools);
  EXPECT_FALSE(Format(std::string(kTemplate), *ToolFormatFromName("none"))->abilities().tools);
  EXPECT_FALSE(Format("{{ messages[0].content }}")->abilities().tools);
  auto plain = ChatTemplate::Compile("{{ messages[0].content }}", {});
  EXPECT_EQ(
      JinjaChatFormat::Create(std::move(plain).value(), *tokenizer_, *ToolFormatFromName("hermes"))
          .status()
          .field(),
      "tool-format");
  const std::string shows = "{{ tools | tojson }}{{ messages[0].content }}";
  EXPECT_FALSE(Format(shows)->abilities().tools) << "it writes no calls";
  EXPECT_TRUE(Format(shows, *ToolFormatFromName("llama"))->abilities().tools);
  EXPECT_EQ(ToolFormatFromName("dsml").status().field(), "tool-format");
}

}  // namespace
}  // namespace plumb::text
