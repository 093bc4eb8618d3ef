// api/keep_alive_test.cc
// Comments in streams that wait: when they come, that they change nothing else, and what becomes
// of an error behind one. The clock is the test's.
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
  explicit WaitingService(FakeScript script, uint32_t keep_alive_s = 15)
      : fixture(std::move(script), {}, Options(keep_alive_s), FixtureModel::kTemplate, {},
                {.clock = &clock}) {}

  static GenerationOptions Options(uint32_t keep_alive_s) {
    GenerationOptions options;
    options.keep_alive = base::Seconds(keep_alive_s);
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

TEST(KeepAlive, WholeAnswersGetNothing) {
  WaitingService waiting(SayAndHang("a"));
  FakeClient client;
  waiting.fixture.SendChat(client, ChatBody());
  waiting.fixture.generator.WaitLive(1);
  waiting.Pass(60);
  EXPECT_FALSE(client.streamed());
  waiting.Leave(client);
}

TEST(KeepAlive, ZeroIsNever) {
  WaitingService waiting(SayAndHang(""), 0);
  FakeClient client;
  waiting.fixture.SendChat(client, ChatBody({{"stream", true}}));
  waiting.fixture.generator.WaitLive(1);
  waiting.Pass(3600);
  EXPECT_FALSE(client.streamed());
  waiting.Leave(client);
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
