// net/http_client_test.cc
// The client against our server, against a peer that misbehaves, and against no one.
#include "net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/thread.h"
#include "net/response_parser.h"
#include "net/test_socket.h"

namespace plumb::net {
namespace {

using base::Code;
using base::Milliseconds;
using testing::HasSubstr;

const base::SystemClock kClock;

HttpClientRequest Request(uint16_t port, const std::string& target, std::string body = "") {
  auto url = ParseHttpUrl("http://127.0.0.1:" + std::to_string(port) + target);
  EXPECT_TRUE(url.ok());
  return {.method = body.empty() ? HttpMethod::kGet : HttpMethod::kPost,
          .url = *std::move(url),
          .headers = {{"X-Test", "1"}},
          .body = std::move(body)};
}

// Accepts one connection, sends `answer` after the request's header, then closes or goes silent.
class Peer {
 public:
  Peer(std::string answer, bool closes) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = base::Thread("peer", [this, text = std::move(answer), closes] {
      const int fd = accept(listener_, nullptr, nullptr);
      std::string request;
      char bytes[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
        if (got <= 0) break;
        request.append(bytes, static_cast<size_t>(got));
      }
      (void)!send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (!closes) released_.Wait();
      close(fd);
    });
  }
  ~Peer() {
    released_.Set();
    thread_.Join();
    close(listener_);
  }
  uint16_t port() const { return port_; }

 private:
  int listener_ = -1;
  uint16_t port_ = 0;
  TestEvent released_;
  base::Thread thread_;
};

TEST(HttpClient, FetchesAWholeAnswer) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  const auto response = Fetch(Request(server->port(), "/echo?a", "hello"), {}, kClock, nullptr);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "POST /echo?a hello");
  EXPECT_EQ(response->headers.Get("connection"), "close");
}

TEST(HttpClient, StreamsAndMayStop) {
  for (bool stops : {false, true}) {
    TestHandler handler;
    auto server = StartTestServer({}, handler);
    base::Thread answering("answering", [&] {
      Held held = handler.Take();
      EXPECT_EQ(held.request.headers.Get("x-test"), "1");
      held.exchange->StartStream(200, {{"Content-Type", "text/event-stream"}});
      held.exchange->Write("one ");
      held.exchange->Write("two");
      held.exchange->EndStream();
    });
    std::string body;
    int status = 0;
    const base::Status result = FetchStream(Request(server->port(), "/hold"), {}, kClock, nullptr,
                                            {.on_head =
                                                 [&](const HttpResponse& head) {
                                                   status = head.status;
                                                   return true;
                                                 },
                                             .on_body =
                                                 [&](std::string_view bytes) {
                                                   body.append(bytes);
                                                   return !stops;
                                                 }});
    answering.Join();
    EXPECT_EQ(status, 200);
    if (stops) {
      EXPECT_EQ(result.code(), Code::kCancelled);
      EXPECT_THAT(body, testing::StartsWith("one "));
    } else {
      EXPECT_TRUE(result.ok()) << result.ToString();
      EXPECT_EQ(body, "one two");
    }
  }
}

TEST(HttpClient, ReadsARefusalThatComesBeforeTheBodyIsSent) {
  TestHandler handler;
  auto server = StartTestServer({.limits = {.body_bytes_max = 10}}, handler);
  const auto response =
      Fetch(Request(server->port(), "/echo", std::string(16 << 20, 'a')), {}, kClock, nullptr);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(response->status, 413);
}

TEST(HttpClient, IsCancelledFromAnotherThread) {
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  CancelToken cancel;
  TestEvent closed;
  Held held;
  base::Thread cancelling("cancelling", [&] {
    held = handler.Take();
    held.exchange->OnClose([&] { closed.Set(); });
    cancel.Cancel();
  });
  const auto response = Fetch(Request(server->port(), "/hold"), {}, kClock, &cancel);
  cancelling.Join();
  EXPECT_EQ(response.status().code(), Code::kCancelled);
  EXPECT_TRUE(closed.Wait()) << "the server notices";
  EXPECT_EQ(Fetch(Request(server->port(), "/echo"), {}, kClock, &cancel).status().code(),
            Code::kCancelled);
  cancel.Reset();
  EXPECT_TRUE(Fetch(Request(server->port(), "/echo"), {}, kClock, &cancel).ok());
}

TEST(HttpClient, SaysWhatWentWrong) {
  struct Case {
    const char* name;
    std::string answer;
    bool closes;
    Code code;
  };
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const Case& c : std::vector<Case>{
           {"closes at once", "", true, Code::kUnavailable},
           {"closes in the head", "HTTP/1.1 200", true, Code::kUnavailable},
           {"closes in the body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", true,
            Code::kUnavailable},
           {"closes in chunks", chunked + "5\r\nab", true, Code::kUnavailable},
           {"silent", "", false, Code::kDeadline},
           {"silent in the body", chunked + "5\r\nab", false, Code::kDeadline},
           {"not http", "SSH-2.0-x\r\n\r\n", false, Code::kCorrupt},
           {"bad chunk", chunked + "zz\r\n", false, Code::kCorrupt},
           {"large head", "HTTP/1.1 200 OK\r\na: " + std::string(5000, 'a'), false,
            Code::kInvalidArgument},
           {"large body", "HTTP/1.1 200 OK\r\n\r\n" + std::string(5000, 'a'), false,
            Code::kInvalidArgument},
       }) {
    Peer peer(c.answer, c.closes);
    const auto response =
        Fetch(Request(peer.port(), "/"),
              {.silence_max = c.code == Code::kDeadline ? Milliseconds(50) : base::Seconds(20),
               .body_bytes_max = 4000,
               .header_bytes_max = 4000},
              kClock, nullptr);
    EXPECT_EQ(response.status().code(), c.code) << c.name << " " << response.status().ToString();
  }
}

TEST(HttpClient, SaysThatNobodyListens) {
  uint16_t port = 0;
  {
    TestHandler handler;
    port = StartTestServer({}, handler)->port();
  }
  const auto response = Fetch(Request(port, "/"), {}, kClock, nullptr);
  EXPECT_EQ(response.status().code(), Code::kUnavailable);
  EXPECT_THAT(response.status().message(), HasSubstr("127.0.0.1:" + std::to_string(port)));
  HttpClientRequest split = Request(port, "/");
  split.headers.Add("X", "a\r\nY: b");
  EXPECT_EQ(Fetch(split, {}, kClock, nullptr).status().code(), Code::kInvalidArgument);
}

TEST(ResponseParser, ReadsTheSameHoweverTheBytesAreSplit) {
  struct Case {
    std::string wire;
    int status;
    std::string body;
  };
  for (const Case& c : std::vector<Case>{
           {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, "abc"},
           {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 201,
            ""},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 200,
            "abc"},
           {"HTTP/1.0 500 X\r\n\r\nuntil the end", 500, "until the end"},
           {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
       }) {
    for (size_t step = 1; step <= c.wire.size(); ++step) {
      ResponseParser parser(false, 100);
      std::string body;
      for (size_t at = 0; at < c.wire.size(); at += step) {
        ASSERT_TRUE(parser.Feed(std::string_view(c.wire).substr(at, step), body).ok());
      }
      EXPECT_TRUE(parser.End().ok()) << c.wire << " step " << step;
      EXPECT_TRUE(parser.done());
      EXPECT_EQ(parser.head().status, c.status);
      EXPECT_EQ(body, c.body);
    }
  }
}

}  // namespace
}  // namespace plumb::net
