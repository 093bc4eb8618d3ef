// net/test_socket.h
// For tests of net alone: a client that is nothing but a socket, so that a test decides every byte,
// and a handler whose answer the test gives. All waits end after kWaitMax at the latest.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bounded_queue.h"
#include "base/mutex.h"
#include "net/http_server.h"

namespace plumb::net {

constexpr int kWaitMaxSeconds = 20;
// What TestHandler keeps, and what it answers at once.
constexpr std::string_view kGetHold = "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view kGetEcho = "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n";

class TestSocket {
 public:
  explicit TestSocket(uint16_t port, int receive_bytes = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval timeout{.tv_sec = kWaitMaxSeconds, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (receive_bytes > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~TestSocket() { Close(); }
  TestSocket(const TestSocket&) = delete;
  TestSocket& operator=(const TestSocket&) = delete;

  bool connected() const { return connected_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void CloseWithReset() {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    Close();
  }
  void FinishSending() { shutdown(fd_, SHUT_WR); }

  // False when the peer has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Reads until `end` has come, and returns everything up to and with it; what follows is kept.
  // Without it: what came before the peer closed.
  std::string ReadUntil(std::string_view end) {
    size_t at;
    while ((at = buffer_.find(end)) == std::string::npos) {
      if (!ReadSome()) return std::exchange(buffer_, {});
    }
    std::string taken = buffer_.substr(0, at + end.size());
    buffer_.erase(0, at + end.size());
    return taken;
  }
  std::string ReadBytes(size_t size) {
    while (buffer_.size() < size && ReadSome()) {
    }
    std::string taken = buffer_.substr(0, size);
    buffer_.erase(0, taken.size());
    return taken;
  }
  // Everything until the peer closes.
  std::string ReadAll() {
    while (ReadSome()) {
    }
    return std::exchange(buffer_, {});
  }
  // One response with Content-Length: head and body together.
  std::string ReadResponse() {
    std::string head = ReadUntil("\r\n\r\n");
    const size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    return head + ReadBytes(std::stoul(head.substr(at + 16)));
  }
  // True when the peer has closed (orderly or by reset), false when a wait ran out.
  bool closed_by_peer() const { return closed_by_peer_; }

 private:
  bool ReadSome() {
    char bytes[16 << 10];
    const ssize_t size = recv(fd_, bytes, sizeof(bytes), 0);
    if (size == 0 || (size < 0 && errno == ECONNRESET)) closed_by_peer_ = true;
    if (size <= 0) return false;
    buffer_.append(bytes, static_cast<size_t>(size));
    return true;
  }

  int fd_ = -1;
  bool connected_ = false;
  bool closed_by_peer_ = false;
  std::string buffer_;
};

// Set once, waited for by the test.
class TestEvent {
 public:
  void Set() {
    base::MutexLock lock(mutex_);
    set_ = true;
    changed_.NotifyAll();
  }
  bool Wait() {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(lock, base::Seconds(kWaitMaxSeconds),
                            [this]() HOLDS(mutex_) { return set_; });
  }

 private:
  base::Mutex mutex_;
  base::Condition changed_;
  bool set_ GUARDED_BY(mutex_) = false;
};

struct Held {
  HttpRequest request;
  std::unique_ptr<HttpExchange> exchange;
};

// Answers "/echo..." at once with what it got; holds everything else for the test.
class TestHandler final : public HttpHandler {
 public:
  void OnRequest(HttpRequest request, std::unique_ptr<HttpExchange> exchange) override {
    if (request.path.starts_with("/echo")) {
      exchange->Respond({.body = std::string(MethodName(request.method)) + " " + request.path +
                                 "?" + request.query + " " + request.body});
      return;
    }
    Held held{std::move(request), std::move(exchange)};
    EXPECT_TRUE(held_.Push(std::move(held)));
  }
  Held Take() {
    auto held = held_.Pop();
    return std::move(*held);
  }

 private:
  base::BoundedQueue<Held> held_{256};
};

inline std::unique_ptr<HttpServer> StartTestServer(HttpServerOptions options,
                                                   HttpHandler& handler) {
  options.port = 0;
  auto server = HttpServer::Start(std::move(options), handler);
  EXPECT_TRUE(server.ok()) << server.status().ToString();
  return std::move(server).value();
}

}  // namespace plumb::net
