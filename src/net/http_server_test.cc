// net/http_server_test.cc
// The server against hand-written sockets on loopback. Nothing sleeps: a test waits for a byte, a
// close or a callback; time limits under test are short, all others long.
#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "net/test_socket.h"

namespace plumb::net {
namespace {

using base::Milliseconds;
using base::Seconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send("POST /echo?q HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"));
    const std::string response = client.ReadResponse();
    EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\nDate: "));
    EXPECT_THAT(response, HasSubstr("\r\n\r\nPOST /echo?q hi"));
    EXPECT_THAT(response, Not(HasSubstr("Connection: close")));
  }
  EXPECT_EQ(server->stats().requests, 3u);
  EXPECT_EQ(server->stats().connections_open, 1u);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  std::string wire;
  for (int i = 0; i < 200; ++i) {
    wire += "GET /echo/" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  }
  ASSERT_TRUE(client.Send(wire));
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(client.ReadResponse(), HasSubstr("GET /echo/" + std::to_string(i) + "? "));
  }
}

TEST(HttpServer, HoldsAPipelinedRequestUntilTheOneBeforeIsAnswered) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(std::string(kGetHold) + std::string(kGetEcho)));
  Held held = handler.Take();
  held.exchange->Respond({.status = 201, .body = "first"});
  EXPECT_THAT(client.ReadResponse(), HasSubstr("201 Created"));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("GET /echo"));
}

TEST(HttpServer, CutsAClientThatPipelinesTooMuch) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.pipeline_bytes_max = 1000}}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetHold));
  Held held = handler.Take();
  TestEvent closed;
  held.exchange->OnClose([&] { closed.Set(); });
  client.Send(std::string(2000, 'a'));
  EXPECT_TRUE(closed.Wait());
}

TEST(HttpServer, StreamsChunks) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetHold));
  Held held = handler.Take();
  EXPECT_EQ(held.request.peer, "127.0.0.1");
  held.exchange->StartStream(200, {{"Content-Type", "text/event-stream"}});
  const std::string head = client.ReadUntil("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_TRUE(held.exchange->Write("data: a\n\n"));
  EXPECT_EQ(client.ReadUntil("\n\n\r\n"), "9\r\ndata: a\n\n\r\n") << "sent before the next write";
  EXPECT_TRUE(held.exchange->Write(""));
  EXPECT_TRUE(held.exchange->Write("0123456789abcdef"));
  held.exchange->EndStream();
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "10\r\n0123456789abcdef\r\n0\r\n\r\n");
  ASSERT_TRUE(client.Send(kGetEcho));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("GET /echo"));
}

// As a whole answer whose head had to go out early.
TEST(HttpServer, EndsAStreamWithMoreThanItsBufferMayHold) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.output_bytes_max = 1000}}, handler);
  const std::string rest(100'000, 'x');
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetHold));
  Held held = handler.Take();
  held.exchange->StartStream(200, {});
  EXPECT_TRUE(held.exchange->Write("\n"));
  held.exchange->EndStreamWith(rest);
  EXPECT_THAT(client.ReadUntil("0\r\n\r\n"), EndsWith("186a0\r\n" + rest + "\r\n0\r\n\r\n"));
  ASSERT_TRUE(client.Send("GET /hold HTTP/1.0\r\n\r\n"));
  Held old = handler.Take();
  old.exchange->StartStream(200, {});
  old.exchange->EndStreamWith("plain");
  EXPECT_THAT(client.ReadAll(), EndsWith("\r\n\r\nplain"));
}

TEST(HttpServer, EndsAnHttp10StreamByClosing) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send("GET /hold HTTP/1.0\r\n\r\n"));
  Held held = handler.Take();
  held.exchange->StartStream(200, {});
  held.exchange->Write("plain");
  held.exchange->EndStream();
  const std::string all = client.ReadAll();
  EXPECT_THAT(all, HasSubstr("Connection: close\r\n\r\nplain"));
  EXPECT_THAT(all, Not(HasSubstr("chunked")));
  EXPECT_TRUE(client.closed_by_peer());
}

TEST(HttpServer, SendsNoBodyForHead) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send("HEAD /echo HTTP/1.1\r\nHost: h\r\n\r\n" + std::string(kGetEcho)));
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("Content-Length: 12"));
  EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 200 OK"));
}

TEST(HttpServer, SendsContinueWhenAsked) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(
      client.Send("POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                  "Content-Length: 2\r\n\r\n"));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(client.Send("hi"));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("POST /echo? hi"));
}

TEST(HttpServer, KeepsControlBytesOutOfItsHeader) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetHold));
  handler.Take().exchange->Respond({.headers = {{"X-Id", "a\r\nSet-Cookie: b"}}});
  EXPECT_THAT(client.ReadResponse(), HasSubstr("X-Id: a  Set-Cookie: b\r\n"));
}

TEST(HttpServer, AnswersARefusalAndCloses) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.body_bytes_max = 10}}, handler);
  TestSocket client(server->port());
  // The whole body is sent, and the answer still arrives: no reset destroys it.
  ASSERT_TRUE(client.Send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"));
  client.Send(std::string(1000000, 'a'));
  const std::string response = client.ReadAll();
  EXPECT_THAT(response, StartsWith("HTTP/1.1 413 Content Too Large\r\n"));
  EXPECT_THAT(response, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(response, HasSubstr("\r\n\r\nThe body is too large.\n"));
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_EQ(server->stats().refusals, 1u);
}

class JsonHandler final : public HttpHandler {
 public:
  void OnRequest(HttpRequest, std::unique_ptr<HttpExchange>) override {}
  HttpResponse FormatRefusal(const HttpRefusal& refusal) const override {
    return {.status = refusal.status,
            .headers = {{"Content-Type", "application/json"}},
            .body = "{\"error\":\"" + std::string(refusal.message) + "\"}"};
  }
};

TEST(HttpServer, LetsTheHandlerShapeRefusals) {
  JsonHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send("NONSENSE\r\n\r\n"));
  EXPECT_THAT(client.ReadAll(), HasSubstr("{\"error\":\"The header is malformed.\"}"));
}

TEST(HttpServer, AnswersADroppedExchangeWith500) {
  JsonHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetHold));
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 500 Internal Server Error\r\n"));
  EXPECT_TRUE(server->WaitIdle(Seconds(kWaitMaxSeconds)));
}

TEST(HttpServer, CutsAStreamThatIsDropped) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetHold));
  {
    Held held = handler.Take();
    held.exchange->StartStream(200, {});
    held.exchange->Write("half");
    EXPECT_THAT(client.ReadUntil("half\r\n"), HasSubstr("half"));
  }
  EXPECT_EQ(client.ReadAll(), "") << "no last chunk";
  EXPECT_TRUE(client.closed_by_peer());
}

// A request that drips never lasts longer than its phase may.
TEST(HttpServer, ClosesSlowAndIdleClients) {
  struct Case {
    const char* name;
    HttpLimits limits;
    std::string sent;
    std::string answer;
  };
  const std::vector<Case> cases = {
      {"header", {.header_time_max = Milliseconds(30)}, "GET / HT", "HTTP/1.1 408 Request Timeout"},
      {"body",
       {.body_time_max = Milliseconds(30)},
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab",
       "HTTP/1.1 408 Request Timeout"},
      {"no request", {.idle_time_max = Milliseconds(30)}, "", ""},
  };
  for (const Case& slow : cases) {
    TestHandler handler;
    auto server = StartTestServer({.limits = slow.limits}, handler);
    TestSocket client(server->port());
    ASSERT_TRUE(client.Send(slow.sent));
    const std::string answer = client.ReadAll();
    EXPECT_THAT(answer, StartsWith(slow.answer)) << slow.name;
    EXPECT_EQ(answer.empty(), slow.answer.empty()) << slow.name;
    EXPECT_TRUE(client.closed_by_peer()) << slow.name;
  }
}

TEST(HttpServer, ClosesAnIdleKeptConnection) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.idle_time_max = Milliseconds(500)}}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetEcho));
  EXPECT_THAT(client.ReadAll(), HasSubstr("GET /echo"));
  EXPECT_TRUE(client.closed_by_peer());
}

// One byte at a time does not stretch the header's time.
TEST(HttpServer, DrippingDoesNotExtendTheHeaderTime) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.header_time_max = Milliseconds(100)}}, handler);
  TestSocket client(server->port());
  const std::string drip = "GET /" + std::string(8000, 'a');
  base::SystemClock clock;
  const base::Instant begin = clock.Now();
  size_t sent = 0;
  while (client.Send(drip.substr(sent % drip.size(), 1)) && clock.Now() - begin < Seconds(15)) {
    if (++sent > 4000) break;  // below the target's maximum
  }
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 408"));
  EXPECT_LT(clock.Now() - begin, Seconds(15));
}

enum class Leave { kClose, kReset, kHalfClose };

TEST(HttpServer, NoticesAClientThatLeavesWhileItsAnswerIsComputed) {
  for (Leave leave : {Leave::kClose, Leave::kReset, Leave::kHalfClose}) {
    for (bool streaming : {false, true}) {
      TestHandler handler;
      auto server = StartTestServer({}, handler);
      TestSocket client(server->port());
      ASSERT_TRUE(client.Send(kGetHold));
      Held held = handler.Take();
      TestEvent closed;
      held.exchange->OnClose([&] { closed.Set(); });
      if (streaming) {
        held.exchange->StartStream(200, {});
        held.exchange->Write("a");
        client.ReadUntil("1\r\na\r\n");
      }
      EXPECT_FALSE(held.exchange->closed());
      if (leave == Leave::kClose) client.Close();
      if (leave == Leave::kReset) client.CloseWithReset();
      if (leave == Leave::kHalfClose) client.FinishSending();
      EXPECT_TRUE(closed.Wait());
      EXPECT_TRUE(held.exchange->closed());
      if (streaming) {
        EXPECT_FALSE(held.exchange->Write("b"));
        held.exchange->EndStream();
      } else {
        held.exchange->Respond({});
      }
      EXPECT_TRUE(server->WaitIdle(Seconds(kWaitMaxSeconds)));
      EXPECT_EQ(server->stats().disconnects, 1u);
      EXPECT_EQ(server->stats().connections_open, 0u);
    }
  }
}

TEST(HttpServer, DeliversACompleteAnswerToAHalfClosedClient) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetHold));
  Held held = handler.Take();
  const std::string large(4 << 20, 'x');  // more than the socket buffers take at once
  held.exchange->Respond({.body = large});
  client.FinishSending();
  const std::string response = client.ReadAll();
  EXPECT_GT(response.size(), large.size());
}

TEST(HttpServer, RunsALateOnCloseAtOnce) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetHold));
  Held held = handler.Take();
  client.Close();
  ASSERT_TRUE(server->WaitIdle(Seconds(kWaitMaxSeconds)));
  bool ran = false;
  held.exchange->OnClose([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(HttpServer, DoesNotCallOnCloseAfterACompleteAnswer) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  std::atomic<int> calls{0};
  ASSERT_TRUE(client.Send(kGetHold));
  Held held = handler.Take();
  held.exchange->OnClose([&] { ++calls; });
  held.exchange->Respond({.body = "x"});
  client.ReadResponse();
  client.Close();
  server->Shutdown();
  EXPECT_EQ(calls, 0);
}

TEST(HttpServer, CutsAStreamWhoseBufferIsFull) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.output_bytes_max = 1 << 20}}, handler);
  TestSocket client(server->port(), 4096);
  ASSERT_TRUE(client.Send(kGetHold));
  Held held = handler.Take();
  TestEvent closed;
  held.exchange->OnClose([&] { closed.Set(); });
  held.exchange->StartStream(200, {});
  const std::string piece(64 << 10, 'x');
  int written = 0;
  while (held.exchange->Write(piece)) {
    ASSERT_LT(++written, 1000) << "the socket's own buffers take a few MB at most";
  }
  EXPECT_TRUE(closed.Wait());
  EXPECT_EQ(server->stats().write_stalls, 1u);
}

TEST(HttpServer, CutsAClientThatReadsNothing) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.write_stall_max = Milliseconds(30)}}, handler);
  TestSocket client(server->port(), 4096);
  ASSERT_TRUE(client.Send(kGetHold));
  Held held = handler.Take();
  held.exchange->Respond({.body = std::string(32 << 20, 'x')});
  EXPECT_TRUE(server->WaitIdle(Seconds(kWaitMaxSeconds)));
  EXPECT_EQ(server->stats().write_stalls, 1u);
  EXPECT_EQ(server->stats().connections_open, 0u);
}

TEST(HttpServer, LeaksNoConnection) {
  TestHandler handler;
  auto server = StartTestServer({.threads = 2}, handler);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<TestSocket>> clients;
    for (int i = 0; i < 100; ++i) {
      clients.push_back(std::make_unique<TestSocket>(server->port()));
      ASSERT_TRUE(clients.back()->Send(i % 3 == 0 ? kGetHold : kGetEcho));
    }
    for (int i = 0; i < 100; ++i) {
      if (i % 3 == 0) continue;
      EXPECT_THAT(clients[i]->ReadResponse(), HasSubstr("GET /echo"));
    }
    std::vector<Held> held;
    for (int i = 0; i < 34; ++i) held.push_back(handler.Take());
    clients.clear();
    EXPECT_TRUE(server->WaitIdle(Seconds(kWaitMaxSeconds))) << "every held exchange is noticed";
  }
  EXPECT_EQ(server->stats().requests, 300u);
  EXPECT_EQ(server->stats().disconnects, 102u);
}

TEST(HttpServer, DrainFinishesOldRequestsAndRefusesNewOnes) {
  TestHandler handler;
  auto server = StartTestServer({.drain_paths = {"/echo"}}, handler);
  TestSocket old_client(server->port());
  TestSocket kept(server->port());
  ASSERT_TRUE(kept.Send(kGetEcho));
  kept.ReadResponse();
  ASSERT_TRUE(old_client.Send(kGetHold));
  Held held = handler.Take();
  held.exchange->StartStream(200, {});
  server->BeginDrain();
  EXPECT_FALSE(server->WaitIdle(Milliseconds(1)));

  ASSERT_TRUE(kept.Send(kGetHold));
  const std::string refused = kept.ReadAll();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 2\r\n"));
  TestSocket fresh(server->port());
  ASSERT_TRUE(fresh.Send(kGetHold));
  EXPECT_THAT(fresh.ReadAll(), StartsWith("HTTP/1.1 503"));
  TestSocket health(server->port());
  ASSERT_TRUE(health.Send(kGetEcho));
  EXPECT_THAT(health.ReadAll(), StartsWith("HTTP/1.1 200"));

  EXPECT_TRUE(held.exchange->Write("tail"));
  held.exchange->EndStream();
  EXPECT_TRUE(server->WaitIdle(Seconds(kWaitMaxSeconds)));
  server->Shutdown();
  EXPECT_THAT(old_client.ReadAll(), HasSubstr("4\r\ntail\r\n0\r\n\r\n"));
}

TEST(HttpServer, ShutdownCutsWhatIsLeftAndAnExchangeMayOutliveIt) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port());
  ASSERT_TRUE(client.Send(kGetHold));
  Held held = handler.Take();
  std::atomic<int> calls{0};
  held.exchange->OnClose([&] { ++calls; });
  server->Shutdown();
  EXPECT_EQ(calls, 1);
  server.reset();
  client.ReadAll();
  EXPECT_TRUE(client.closed_by_peer());
  held.exchange->StartStream(200, {});
  EXPECT_FALSE(held.exchange->Write("x"));
}

TEST(HttpServer, SaysWhichFlagIsWrong) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  auto clash = HttpServer::Start({.port = server->port()}, handler);
  ASSERT_FALSE(clash.ok());
  EXPECT_EQ(clash.status().code(), base::Code::kInvalidArgument);
  EXPECT_EQ(clash.status().field(), "--port");
  EXPECT_THAT(clash.status().message(), HasSubstr("already in use"));

  for (const char* host : {"", "example.org", "127.0.0.1:80", "300.0.0.1", "192.0.2.1"}) {
    auto bad = HttpServer::Start({.host = host, .port = 0}, handler);
    ASSERT_FALSE(bad.ok()) << host;
    EXPECT_EQ(bad.status().field(), "--host") << host;
  }
}

TEST(HttpServer, CanBeRestartedOnItsPortAtOnce) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  const uint16_t port = server->port();
  TestSocket client(port);
  ASSERT_TRUE(client.Send(kGetEcho));
  client.ReadResponse();
  server.reset();
  auto again = HttpServer::Start({.port = port}, handler);
  EXPECT_TRUE(again.ok()) << again.status().ToString();
}

}  // namespace
}  // namespace plumb::net
