// cli/chat_test.cc: what a conversation asks for, and what comes back from servers and onto
// terminals.
#include "cli/chat.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/chat_request.h"
#include "cli/remote_talker.h"
#include "cli/terminal_text.h"

namespace plumb::cli {
namespace {

TEST(Conversation, MakesABodyThatTheChatApiTakes) {
  ChatSampling sampling;
  sampling.top_p = 0.5f;
  sampling.top_k = 3;
  sampling.min_p = 0.1f;
  sampling.repetition_penalty = 1.1f;
  sampling.seed = 9;
  sampling.stop = {"END", "\n\n"};
  Conversation conversation(sampling, "Be short.");
  conversation.Add("hi", "hello \"you\"");
  const auto request = api::ParseChatRequest(conversation.BodyFor("m", "bye\n"), {});
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  ASSERT_EQ(request->messages.size(), 4u);
  EXPECT_EQ(request->messages[0].role, "system");
  EXPECT_EQ(request->messages[2].content, "hello \"you\"");
  EXPECT_EQ(request->messages[3].content, "bye\n");
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
  conversation.Add("a", "b");
  conversation.Reset();
  const auto body = nlohmann::json::parse(conversation.BodyFor("m", "c"));
  EXPECT_EQ(body["messages"].size(), 2u);
  EXPECT_EQ(conversation.turns(), 0u);
}

TEST(RunChat, AnEmptyMessageIsAMistakeAndNoConversation) {
  ChatSettings settings;
  settings.once = "";
  settings.engine.model = "/no/such/model";
  const base::Status status = RunChat(settings, [](const std::string&) { return std::nullopt; });
  EXPECT_EQ(status.field(), "--once");
}

TEST(ReadChunk, GathersTextReasonUsageAndSeed) {
  std::string text;
  AnswerEnd end;
  for (
      const char* chunk :
      {R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"plumb":{"seed":-7}})",
       R"({"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]})",
       R"({"choices":[{"index":0,"delta":{"content":"lo"}}],"usage":null})",
       R"({"choices":[{"index":0,"delta":{},"finish_reason":"length"}]})",
       R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}})"}) {
    ASSERT_TRUE(ReadChunk(chunk, text, end).ok()) << chunk;
  }
  EXPECT_EQ(text, "Hello");
  EXPECT_EQ(end.finish_reason, "length");
  EXPECT_EQ(end.prompt_tokens, 3u);
  EXPECT_EQ(end.completion_tokens, 2u);
  EXPECT_EQ(end.seed, -7);
}

TEST(ReadChunk, SurvivesWhatItDoesNotExpect) {
  std::string text;
  AnswerEnd end;
  EXPECT_EQ(ReadChunk("nonsense", text, end).code(), base::Code::kCorrupt);
  EXPECT_EQ(ReadChunk("[]", text, end).code(), base::Code::kCorrupt);
  for (const char* chunk :
       {"{}", R"({"choices":7})", R"({"choices":[7]})", R"({"choices":[{"delta":[]}]})",
        R"({"choices":[{"delta":{"content":7}}],"usage":{"prompt_tokens":-1}})"}) {
    EXPECT_TRUE(ReadChunk(chunk, text, end).ok()) << chunk;
  }
  EXPECT_EQ(text, "");
  const base::Status error =
      ReadChunk(R"({"error":{"message":"no room","code":"full"}})", text, end);
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
