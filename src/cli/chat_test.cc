// cli/chat_test.cc: what a conversation asks for, and what comes back from servers and onto
// terminals.
#include "cli/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/chat_request.h"
#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "cli/remote_talker.h"
#include "cli/terminal_text.h"

namespace plumb::cli {
namespace {

TEST(Conversation, MakesABodyThatTheChatApiTakes) {
  ChatSampling sampling;
  sampling.temperature = kTemperatureUsual;
  sampling.top_p = 0.5f;
  sampling.top_k = 3;
  sampling.min_p = 0.1f;
  sampling.repetition_penalty = 1.1f;
  sampling.seed = 9;
  sampling.stop = {"END", "\n\n"};
  Conversation conversation(sampling, "Be short.");
  conversation.Add("hi", {.content = "hello \"you\""});
  const auto request = api::ParseChatRequest(conversation.BodyFor("m", "bye\n"), {});
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  ASSERT_EQ(request->input.messages.size(), 4u);
  EXPECT_EQ(request->input.messages[0].role, "system");
  EXPECT_EQ(request->input.messages[2].content, "hello \"you\"");
  EXPECT_EQ(request->input.messages[3].content, "bye\n");
  EXPECT_FLOAT_EQ(request->sampling.temperature, 0.7f);
  EXPECT_FLOAT_EQ(request->sampling.top_p, 0.5f);
  EXPECT_EQ(request->sampling.top_k, 3u);
  EXPECT_EQ(request->sampling.seed, 9u);
  EXPECT_EQ(request->sampling.stop.size(), 2u);
  EXPECT_EQ(request->tokens_max, 1024u);
  EXPECT_TRUE(request->stream);
}

TEST(Conversation, ResetForgetsTheTurnsAndKeepsTheSystemText) {
  Conversation conversation({}, "Be short.");
  conversation.Add("a", {.content = "b"});
  conversation.Reset();
  const auto body = nlohmann::json::parse(conversation.BodyFor("m", "c"));
  EXPECT_EQ(body["messages"].size(), 2u);
  EXPECT_EQ(conversation.turns(), 0u);
}

TEST(Conversation, GoesOnWithTheResultsOfCalls) {
  ChatSampling sampling;
  sampling.thinking = "off";
  sampling.effort = "42";
  sampling.tools_json = R"([{"type":"function","function":{"name":"f"}}])";
  Conversation conversation(sampling, "");
  conversation.Add("go", {.reasoning = "r",
                          .content = "",
                          .calls = {{.name = "f", .arguments = "{}"}, {.name = "f"}}});
  ASSERT_EQ(conversation.waiting().size(), 2u);
  conversation.AddResult("one");
  api::RequestLimits limits;
  limits.abilities = {.tools = true, .reasoning = true, .guides = true};
  const auto request = api::ParseChatRequest(conversation.BodyFor("m", "two"), limits);
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  const std::vector<text::ChatMessage>& messages = request->input.messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[1].reasoning, "r");
  EXPECT_EQ(messages[2].tool_call_id, messages[1].tool_calls[0].id);
  EXPECT_EQ(messages[3].tool_call_id, messages[1].tool_calls[1].id);
  EXPECT_EQ(messages[3].content, "two");
  EXPECT_EQ(request->input.thinking, false);
  EXPECT_EQ(request->input.effort, "42");
  EXPECT_EQ(request->input.tools.size(), 1u);
}

std::string Printed(bool terminal, const std::vector<text::AnswerDelta>& deltas) {
  AnswerPrinter printer(terminal);
  std::string out;
  for (const text::AnswerDelta& delta : deltas) out += printer.Show(delta);
  return out + printer.End();
}

TEST(AnswerPrinter, TellsThoughtsContentAndCallsApart) {
  using Kind = text::AnswerDelta::Kind;
  const std::vector<text::AnswerDelta> deltas = {
      {Kind::kReasoning, "h"}, {Kind::kReasoning, "m\x1b"}, {Kind::kContent, "ok"},
      {Kind::kCallBegin, "f"}, {Kind::kArguments, "{"},     {Kind::kArguments, "}"},
      {Kind::kCallBegin, "g"}, {Kind::kArguments, "{}"}};
  EXPECT_EQ(Printed(false, deltas),
            "<think>\nhm\x1b\n</think>\nok\n[calls f({})]\n"
            "[calls g({})]\n");
  EXPECT_EQ(Printed(true, deltas),
            "\x1b[2mhm\xEF\xBF\xBD\x1b[0m\n\nok\n[calls f({})]\n"
            "[calls g({})]\n");
  EXPECT_EQ(Printed(true, {{Kind::kReasoning, "cut"}}), "\x1b[2mcut\x1b[0m\n\n");
}

TEST(RunChat, AnEmptyMessageIsAMistakeAndNoConversation) {
  ChatSettings settings;
  settings.once = "";
  settings.engine.model = "/no/such/model";
  const base::Status status = RunChat(settings, [](const std::string&) { return std::nullopt; });
  EXPECT_EQ(status.field(), "--once");
}

TEST(RunChat, ToolsAndEffortAreReadBeforeAModelIs) {
  const base::ScratchFolder folder;
  const auto refused = [&](const std::string& tools, const std::string& effort) {
    EXPECT_TRUE(base::WriteFileAtomic(folder.File("tools.json"), tools).ok());
    ChatSettings settings;
    settings.once = "hi";
    settings.tools = folder.File("tools.json");
    settings.sampling.effort = effort;
    settings.engine.model = "/no/such/model";
    return RunChat(settings, [&](const std::string& name) {
      return name == "PLUMB_CACHE" ? std::optional(folder.path()) : std::nullopt;
    });
  };
  for (const char* tools : {"bad", "", "[", R"([], "messages": [])", "{}",
                            R"([{"type": "function", "function": {"name": 7}}])",
                            R"([{"type": "custom", "custom": {"name": "note"}}])"}) {
    const base::Status status = refused(tools, "");
    EXPECT_EQ(status.field(), "--tools") << tools << ": " << status.ToString();
    EXPECT_THAT(status.message(), testing::StartsWith("--tools: ")) << tools;
  }
  EXPECT_THAT(refused(R"([{"type": "function", "function": {"name": 7}}])", "").message(),
              testing::HasSubstr("tools[0].function"));
  const base::Status effort = refused("[]", "HIGH");
  EXPECT_EQ(effort.field(), "--effort");
  EXPECT_THAT(effort.message(), testing::HasSubstr("medium, high, xhigh, max"));
  for (const char* good : {"", "none", "high", "100"}) {
    EXPECT_EQ(refused(R"([{"type": "function", "function": {"name": "f"}}])", good).code(),
              base::Code::kNotFound)
        << good;
  }
}

TEST(ReadChunk, GathersTextReasonUsageAndSeed) {
  std::vector<text::AnswerDelta> deltas;
  AnswerEnd end;
  for (
      const char* chunk :
      {R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"plumb":{"seed":-7}})",
       R"({"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]})",
       R"({"choices":[{"index":0,"delta":{"content":"lo"}}],"usage":null})",
       R"({"choices":[{"index":0,"delta":{},"finish_reason":"length"}]})",
       R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}})"}) {
    ASSERT_TRUE(ReadChunk(chunk, deltas, end).ok()) << chunk;
  }
  EXPECT_EQ(deltas, (std::vector<text::AnswerDelta>{{text::AnswerDelta::Kind::kContent, "Hello"}}));
  EXPECT_EQ(end.finish_reason, "length");
  EXPECT_EQ(end.prompt_tokens, 3u);
  EXPECT_EQ(end.completion_tokens, 2u);
  EXPECT_EQ(end.seed, -7);
}

TEST(ReadChunk, GathersReasoningAndCalls) {
  using Kind = text::AnswerDelta::Kind;
  std::vector<text::AnswerDelta> deltas;
  AnswerEnd end;
  for (const char* chunk :
       {R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})",
        R"({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","type":"function",)"
        R"("function":{"name":"f","arguments":""}}]}}]})",
        R"({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]})"}) {
    ASSERT_TRUE(ReadChunk(chunk, deltas, end).ok()) << chunk;
  }
  EXPECT_EQ(deltas,
            (std::vector<text::AnswerDelta>{
                {Kind::kReasoning, "hm"}, {Kind::kCallBegin, "f"}, {Kind::kArguments, "{}"}}));
}

TEST(ReadChunk, SurvivesWhatItDoesNotExpect) {
  std::vector<text::AnswerDelta> deltas;
  AnswerEnd end;
  EXPECT_EQ(ReadChunk("nonsense", deltas, end).code(), base::Code::kCorrupt);
  EXPECT_EQ(ReadChunk("[]", deltas, end).code(), base::Code::kCorrupt);
  for (const char* chunk :
       {"{}", R"({"choices":7})", R"({"choices":[7]})", R"({"choices":[{"delta":[]}]})",
        R"({"choices":[{"delta":{"content":7}}],"usage":{"prompt_tokens":-1}})"}) {
    EXPECT_TRUE(ReadChunk(chunk, deltas, end).ok()) << chunk;
  }
  EXPECT_TRUE(deltas.empty());
  const base::Status error =
      ReadChunk(R"({"error":{"message":"no room","code":"full"}})", deltas, end);
  EXPECT_EQ(error.message(), "no room");
  EXPECT_EQ(error.reason(), "full");
}

TEST(TerminalText, ShowsTextAndDisarmsControls) {
  EXPECT_EQ(TerminalText("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(TerminalText("\x1b]0;x\x07"), "\xEF\xBF\xBD]0;x\xEF\xBF\xBD");
  EXPECT_EQ(TerminalText("\xC2\x9B"
                         "31m"),
            "\xEF\xBF\xBD"
            "31m");
  EXPECT_EQ(TerminalText("caf\xC3\xA9 \xEA\xB0\x80"), "caf\xC3\xA9 \xEA\xB0\x80");
}

}  // namespace
}  // namespace plumb::cli
