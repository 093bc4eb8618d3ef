// net/http_server_admission_test.cc
// Whom the server lets in, and how much of what: bodies by their header, by caller and together,
// and connections beside each other. As in http_server_test.cc nothing sleeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "net/http_server.h"
#include "net/test_socket.h"

namespace plumb::net {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(HttpAdmission, BoundsAllBodiesTogether) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.bodies_bytes_max = 100}}, handler);
  const std::string head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 80\r\n\r\n";
  TestSocket first(server->port());
  ASSERT_TRUE(
      first.Send("POST /hold HTTP/1.1\r\nHost: h\r\nContent-Length: 80\r\n"
                 "Expect: 100-continue\r\n\r\n" +
                 std::string(70, 'a')));
  first.ReadUntil("100 Continue\r\n\r\n");
  TestSocket second(server->port());
  ASSERT_TRUE(second.Send(head + std::string(40, 'b')));
  EXPECT_THAT(second.ReadAll(), StartsWith("HTTP/1.1 503"));
  ASSERT_TRUE(first.Send(std::string(10, 'a')));
  handler.Take();
  TestSocket third(server->port());
  ASSERT_TRUE(third.Send(head + std::string(80, 'c')));
  EXPECT_THAT(third.ReadResponse(), StartsWith("HTTP/1.1 200")) << "a complete body is released";
}

// Lets in what names a caller, as a service does with keys.
class Doorman final : public HttpHandler {
 public:
  void OnRequest(HttpRequest request, std::unique_ptr<HttpExchange> exchange) override {
    exchange->Respond({.body = "got " + std::to_string(request.body.size())});
  }
  HttpAdmission Admit(const HttpRequest& head) override {
    asked.fetch_add(1);
    const auto caller = head.headers.Get("Caller");
    if (!caller) return {.answer = HttpResponse{.status = 401, .headers = {}, .body = "who?"}};
    return {.answer = {}, .body_bytes_max = 1000, .account = static_cast<uint32_t>(caller->size())};
  }
  std::atomic<int> asked{0};
};

std::string PostHead(std::string_view caller, std::string_view more) {
  std::string head = "POST /x HTTP/1.1\r\nHost: h\r\n";
  if (!caller.empty()) head += "Caller: " + std::string(caller) + "\r\n";
  return head + std::string(more) + "\r\n\r\n";
}

TEST(HttpAdmission, RefusesByTheHeaderBeforeTheBodyComes) {
  Doorman handler;
  auto server = StartTestServer({}, handler);
  for (const char* framing : {"Content-Length: 5000000", "Transfer-Encoding: chunked",
                              "Content-Length: 5\r\nExpect: 100-continue", "Content-Length: 5"}) {
    TestSocket client(server->port());
    ASSERT_TRUE(client.Send(PostHead("", framing)));
    const std::string answer = client.ReadUntil("who?");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 Unauthorized\r\n")) << framing;
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n")) << framing;
    // What would be a request of its own to who takes the answer for the end of this one.
    client.Send("GET /smuggled HTTP/1.1\r\nHost: h\r\nCaller: a\r\n\r\n");
    client.FinishSending();
    EXPECT_EQ(client.ReadAll(), "") << framing;
    EXPECT_TRUE(client.closed_by_peer()) << framing;
  }
  EXPECT_EQ(server->stats().requests, 0u);
  EXPECT_EQ(server->stats().refusals, 0u) << "counted by the handler, as its answers are";
}

TEST(HttpAdmission, LetsInByTheHeader) {
  Doorman handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(PostHead("a", "Content-Length: 5\r\nExpect: 100-continue")));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(client.Send("hello"));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("got 5"));
  ASSERT_TRUE(client.Send(PostHead("", "Content-Length: 5") + "hello"));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("got 5")) << "came whole: OnRequest decides";
  EXPECT_EQ(handler.asked, 1);
}

TEST(HttpAdmission, LimitsABodyAsTheHandlerSays) {
  for (const char* rest :
       {"Content-Length: 1001", "Transfer-Encoding: chunked\r\n\r\n3e9\r\naaa"}) {
    Doorman handler;
    auto server = StartTestServer({}, handler);
    TestSocket client(server->port());
    ASSERT_TRUE(client.Send(PostHead("a", rest)));
    if (std::string_view(rest).starts_with("T")) client.Send("aaa");
    EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 413")) << rest;
  }
}

TEST(HttpAdmission, LeavesRoomForBodiesOfOthers) {
  Doorman handler;
  auto server = StartTestServer({.limits = {.bodies_bytes_max = 100}}, handler);
  const auto framing = [](int bytes) {
    return "Content-Length: " + std::to_string(bytes) + "\r\nExpect: 100-continue";
  };
  TestSocket first(server->port());
  ASSERT_TRUE(first.Send(PostHead("a", framing(40))));
  EXPECT_EQ(first.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  TestSocket greedy(server->port());
  ASSERT_TRUE(greedy.Send(PostHead("a", framing(40))));
  const std::string answer = greedy.ReadAll();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 429 Too Many Requests\r\n")) << "before its body";
  EXPECT_THAT(answer, HasSubstr("Retry-After: "));
  TestSocket other(server->port());
  ASSERT_TRUE(other.Send(PostHead("bb", framing(25))));
  EXPECT_EQ(other.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  // Less is left now than the first has, which was let in.
  ASSERT_TRUE(first.Send(std::string(20, 'a')));
  ASSERT_TRUE(other.Send(std::string(25, 'b')));
  EXPECT_THAT(other.ReadResponse(), HasSubstr("got 25"));
  ASSERT_TRUE(first.Send(std::string(20, 'a')));
  EXPECT_THAT(first.ReadResponse(), HasSubstr("got 40"));
}

// Without Content-Length nobody knows what is to come, so each read is asked for.
TEST(HttpAdmission, LeavesRoomForBodiesOfOthersInChunks) {
  Doorman handler;
  auto server = StartTestServer({.limits = {.bodies_bytes_max = 100}}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(PostHead("a", "Transfer-Encoding: chunked\r\nExpect: 100-continue")));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(client.Send("3c\r\n" + std::string(60, 'a') + "\r\n"));
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 429"));
}

// Connections that say nothing, or drip a header, never keep out who has something to say.
TEST(HttpAdmission, ANewConnectionTakesThePlaceOfTheLongestWithoutAHeader) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.connections_max = 2}}, handler);
  TestSocket busy(server->port());
  ASSERT_TRUE(busy.Send(kGetHold));
  Held held = handler.Take();
  TestSocket half_open(server->port());
  ASSERT_TRUE(half_open.Send("GET /ec"));
  // Its own place is free for others soon after its answer was read.
  const auto served = [&] {
    for (int tries = 0; tries < 1000; ++tries) {
      auto client = std::make_unique<TestSocket>(server->port());
      if (client->Send(kGetEcho) && client->ReadResponse().starts_with("HTTP/1.1 200"))
        return client;
    }
    return std::unique_ptr<TestSocket>();
  };
  std::unique_ptr<TestSocket> idle = served();
  ASSERT_NE(idle, nullptr);
  EXPECT_EQ(half_open.ReadAll(), "");
  EXPECT_TRUE(half_open.closed_by_peer());
  for (int i = 0; i < 100; ++i) {
    std::unique_ptr<TestSocket> next = served();
    ASSERT_NE(next, nullptr) << i;
    EXPECT_EQ(idle->ReadAll(), "") << "an idle connection is closed like one that never spoke";
    idle = std::move(next);
  }
  EXPECT_GE(server->stats().connections_displaced, 101u);
  held.exchange->Respond({.status = 201});
  EXPECT_THAT(busy.ReadResponse(), StartsWith("HTTP/1.1 201")) << "who is served stays";
}

TEST(HttpAdmission, Refuses503AboveTheMaximumOfConnections) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.connections_max = 2, .retry_after_s = 7}}, handler);
  TestSocket first(server->port());
  TestSocket second(server->port());
  ASSERT_TRUE(first.Send(kGetHold));
  ASSERT_TRUE(second.Send(kGetHold));
  const Held held[] = {handler.Take(), handler.Take()};
  TestSocket third(server->port());
  third.Send(kGetEcho);
  const std::string response = third.ReadAll();
  EXPECT_THAT(response, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(response, HasSubstr("Retry-After: 7\r\n"));
  EXPECT_EQ(server->stats().connections_refused, 1u);
}

}  // namespace
}  // namespace plumb::net
