// eval/speed/gateway/connection.cc
// See connection.h. Reads as much of HTTP as answers to such requests have.
#include "connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace plumb::speed {
namespace {

base::Status Failed(std::string_view what) {
  return base::Status(base::Code::kUnavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

bool IsLater(ssize_t size) { return size < 0 && (errno == EAGAIN || errno == EINTR); }

}  // namespace

base::Result<Connection> Connection::Open(uint16_t port) {
  Connection connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connection.fd_ < 0) return Failed("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Failed("connect");
  const int on = 1;
  setsockopt(connection.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connection;
}

Connection::Connection(Connection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      request_(std::move(other.request_)),
      written_(other.written_),
      answer_(std::move(other.answer_)),
      complete_(other.complete_) {}

Connection::~Connection() {
  if (fd_ >= 0) close(fd_);
}

void Connection::Send(std::string request) {
  request_ = std::move(request);
  written_ = 0;
  answer_.clear();
  complete_ = false;
}

base::Status Connection::Move() {
  RETURN_IF_ERROR(Write());
  RETURN_IF_ERROR(Read());
  return Judge();
}

base::Status Connection::Write() {
  while (wants_to_write()) {
    const ssize_t size = send(fd_, request_.data() + written_, request_.size() - written_,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (IsLater(size)) break;
    if (size < 0) return Failed("send");
    written_ += static_cast<size_t>(size);
  }
  return base::OkStatus();
}

base::Status Connection::Read() {
  std::array<char, 16 << 10> bytes;
  for (;;) {
    const ssize_t size = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (IsLater(size)) return base::OkStatus();
    if (size < 0) return Failed("recv");
    if (size == 0) return base::Status(base::Code::kUnavailable, "the server closed a connection");
    answer_.append(bytes.data(), static_cast<size_t>(size));
    if (static_cast<size_t>(size) < bytes.size()) return base::OkStatus();
  }
}

base::Status Connection::Judge() {
  const size_t head = answer_.find("\r\n\r\n");
  if (head == answer_.npos) return base::OkStatus();
  if (!answer_.starts_with("HTTP/1.1 200 "))
    return base::Status(base::Code::kCorrupt, fmt::format("not a 200: {:.600}", answer_));
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  const size_t length = answer_.find(kLength);
  if (length == answer_.npos || length > head) {
    complete_ = answer_.ends_with("\r\n0\r\n\r\n");
    return base::OkStatus();
  }
  size_t bytes = 0;
  const char* digits = answer_.data() + length + kLength.size();
  std::from_chars(digits, answer_.data() + head, bytes);
  complete_ = answer_.size() >= head + 4 + bytes;
  return base::OkStatus();
}

}  // namespace plumb::speed
