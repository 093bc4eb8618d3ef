// api/keep_alive_test.cc
// What is written to clients that wait, comments in streams and empty lines before whole answers:
// when it comes, that it changes nothing else, and what becomes of an error behind it. The clock is
// the test's.
#include <gtest/gtest.h>

#include <string>

#include "api/testing/service_fixture.h"

namespace plumb::api::testing {
namespace {

constexpr std::string_view kComment = ": keep-alive\n\n";

// Says `text`, then nothing more until it is cancelled.
FakeScript SayAndHang(std::string text) {
  return [text](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = ByteTokens(text, /*end=*/false), .chunk_tokens = 1, .failure = {}};
  };
}

struct WaitingService {
  explicit WaitingService(FakeScript script,
                          SilenceLimits silence = {base::Seconds(15), base::Seconds(25)})
      : fixture(std::move(script), {}, Options(silence), FixtureModel::kTemplate, {},
                {.clock = &clock}) {}

  static GenerationOptions Options(const SilenceLimits& silence) {
    GenerationOptions options;
    options.keep_alive = silence;
    return options;
  }
  // Time passes, and the service is told, as every second.
  void Pass(uint32_t seconds) {
    for (uint32_t i = 0; i < seconds; ++i) {
      clock.Advance(base::Seconds(1));
      fixture.service.KeepAlive();
    }
  }
  void Leave(FakeClient& client) {
    client.Leave();
    client.WaitGone();
    fixture.WaitIdle();
  }

  base::ManualClock clock;
  ServiceFixture fixture;
};

size_t Comments(const std::string& body) {
  size_t count = 0;
  for (size_t at = 0; (at = body.find(kComment, at)) != body.npos; ++at) ++count;
  return count;
}

TEST(KeepAlive, AStreamWithoutItsFirstTokenGetsAComment) {
  WaitingService waiting(SayAndHang(""));
  FakeClient client;
  waiting.fixture.SendChat(client, ChatBody({{"stream", true}}));
  waiting.fixture.generator.WaitLive(1);
  waiting.Pass(14);
  EXPECT_FALSE(client.streamed());
  waiting.Pass(1);
  client.WaitBytes(kComment.size());
  EXPECT_EQ(client.so_far().status, 200);
  EXPECT_EQ(client.so_far().headers.Get("Content-Type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(client.so_far().body, kComment);
  waiting.Pass(14);
  EXPECT_EQ(client.so_far().body, kComment);
  waiting.Pass(1);
  EXPECT_EQ(Comments(client.so_far().body), 2u);
  waiting.Leave(client);
}

TEST(KeepAlive, SilenceCountsFromTheLastPiece) {
  WaitingService waiting([](const engine::Request& request, uint32_t) {
    const bool hangs = request.sampling.seed == 1;
    return FakeAnswer{.tokens = ByteTokens("a", !hangs), .chunk_tokens = 1, .failure = {}};
  });
  FakeClient client;
  waiting.fixture.SendChat(client, ChatBody({{"stream", true}, {"seed", 1}}));
  client.WaitBytes(1);
  // Behind this one's answer the generator is done with the first's piece.
  ASSERT_EQ(waiting.fixture.Ask(ChatBody({{"seed", 2}})).status, 200);
  waiting.Pass(14);
  EXPECT_EQ(Comments(client.so_far().body), 0u);
  waiting.Pass(16);
  EXPECT_EQ(Comments(client.so_far().body), 2u);
  waiting.Leave(client);
}

TEST(KeepAlive, AWholeAnswerBeginsWithEmptyLines) {
  WaitingService waiting(SayAndHang(""));
  FakeClient client;
  waiting.fixture.SendChat(client, ChatBody());
  waiting.fixture.generator.WaitLive(1);
  waiting.Pass(24);
  EXPECT_FALSE(client.streamed());
  waiting.Pass(1);
  EXPECT_TRUE(client.streamed());
  EXPECT_EQ(client.so_far().status, 200);
  EXPECT_EQ(client.so_far().headers.Get("Content-Type"), "application/json");
  EXPECT_TRUE(client.so_far().headers.Get("X-Request-Id").has_value());
  waiting.Pass(25);
  EXPECT_EQ(client.so_far().body, "\n\n");
  waiting.fixture.generator.Resume({.tokens = ByteTokens("late"), .failure = {}});
  const net::HttpResponse whole = client.Wait();
  ASSERT_TRUE(whole.body.starts_with("\n\n{")) << whole.body;
  EXPECT_EQ(json::parse(whole.body)["choices"][0]["message"]["content"], "late");
}

// Its own limit for each kind.
TEST(KeepAlive, ZeroIsNever) {
  for (const bool stream : {false, true}) {
    SilenceLimits silence{.stream = base::Seconds(1), .whole = base::Seconds(1)};
    (stream ? silence.stream : silence.whole) = base::Seconds(0);
    WaitingService waiting(SayAndHang(""), silence);
    FakeClient client;
    waiting.fixture.SendChat(client, ChatBody({{"stream", stream}}));
    waiting.fixture.generator.WaitLive(1);
    waiting.Pass(3600);
    EXPECT_FALSE(client.streamed()) << stream;
    waiting.Leave(client);
  }
}

TEST(KeepAlive, AnAnswerForNobodyGetsNothing) {
  WaitingService waiting(SayAndHang(""));
  FakeClient client;
  waiting.fixture.Send(client, net::HttpMethod::kPost, "/v1/responses",
                       json{{"model", "fake"}, {"input", "hi"}, {"background", true}}.dump());
  const std::string accepted = client.Wait().body;
  waiting.fixture.generator.WaitLive(1);
  waiting.Pass(60);
  EXPECT_EQ(client.so_far().body, accepted);
  waiting.fixture.service.Stop();
}

// What comes after the comments is the stream as it would have been, errors included.
TEST(KeepAlive, AnErrorBehindACommentIsAnEvent) {
  struct Case {
    const char* path;
    json body;
    const char* says;
  };
  const json chat = ChatBody({{"stream", true}});
  const json messages = {{"model", "fake"},
                         {"max_tokens", 5},
                         {"stream", true},
                         {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  const json responses = {{"model", "fake"}, {"stream", true}, {"input", "hi"}};
  const json completions = {{"model", "fake"}, {"stream", true}, {"prompt", "hi"}};
  const Case cases[] = {{"/v1/chat/completions", chat, "server_stopping"},
                        {"/v1/completions", completions, "server_stopping"},
                        {"/v1/messages", messages, "api_error"},
                        {"/v1/responses", responses, "response.failed"}};
  for (const Case& one : cases) {
    WaitingService waiting(SayAndHang(""));
    FakeClient client;
    waiting.fixture.Send(client, net::HttpMethod::kPost, one.path, one.body.dump());
    waiting.fixture.generator.WaitLive(1);
    waiting.Pass(15);
    client.WaitBytes(kComment.size());
    waiting.fixture.service.Stop();  // the generator ends what runs
    const net::HttpResponse& response = client.Wait();
    EXPECT_EQ(response.status, 200) << one.path;
    ASSERT_TRUE(response.body.starts_with(kComment)) << response.body;
    EXPECT_NE(response.body.find(one.says), std::string::npos) << response.body;
    EXPECT_FALSE(StreamData(response.body).empty());
  }
}

}  // namespace
}  // namespace plumb::api::testing
