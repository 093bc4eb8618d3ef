// net/http_client.cc
// One request over one non-blocking socket and poll: every wait is for the socket, the cancel token
// or a deadline. No I/O loop, since a command line does one thing at a time.
#include "net/http_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "net/response_parser.h"

namespace plumb::net {

using base::Code;
using base::Result;
using base::Status;

namespace {

constexpr int kPollMsMax = 60'000;  // the deadline is looked at again after that

std::string ErrnoText(int error) { return std::generic_category().message(error); }

// A connected socket; every call waits for at most `silence_max`. A resource type.
class Connection {
 public:
  Connection(const HttpClientOptions& options, const base::Clock& clock, CancelToken* cancel)
      : options_(options), clock_(clock), cancel_fd_(cancel ? cancel->fd() : -1) {}
  ~Connection() { Close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status Connect(const HostPort& address);
  // Sends all, or stops early with ok when the peer answers or closes before it has read all.
  Status Send(std::string_view bytes);
  // 0 bytes: the peer has closed.
  Result<size_t> Receive(std::span<char> buffer);

 private:
  Status ConnectTo(const addrinfo& info);
  // The events of `events` that came to pass. kDeadline, kCancelled.
  Result<short> Wait(short events, base::Duration time_max);
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  const HttpClientOptions& options_;
  const base::Clock& clock_;
  const int cancel_fd_;
  int fd_ = -1;
};

Result<short> Connection::Wait(short events, base::Duration time_max) {
  const base::Instant deadline = clock_.Now() + time_max;
  for (;;) {
    const int64_t left_ms = (deadline - clock_.Now()).ms() + 1;
    std::array<pollfd, 2> fds = {pollfd{fd_, events, 0}, pollfd{cancel_fd_, POLLIN, 0}};
    const int ready =
        poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(left_ms, 0, kPollMsMax)));
    if (fds[1].revents != 0 && ready > 0) return Status(Code::kCancelled, "cancelled");
    if (ready > 0) return fds[0].revents;
    if (ready < 0 && errno != EINTR) return base::Internal("poll: " + ErrnoText(errno));
    if (clock_.Now() >= deadline) {
      return Status(Code::kDeadline,
                    fmt::format("the other side was silent for {:.1f} s", time_max.seconds()));
    }
  }
}

Status Connection::Connect(const HostPort& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (error != 0) {
    return Status(Code::kUnavailable,
                  fmt::format("cannot find the host {}: {}", address.host, gai_strerror(error)));
  }
  Status status(Code::kUnavailable, fmt::format("the host {} has no address", address.host));
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    status = ConnectTo(*info);
    if (status.ok() || status.code() == Code::kCancelled) break;
  }
  freeaddrinfo(list);
  if (status.code() == Code::kUnavailable) {
    return Status(Code::kUnavailable, fmt::format("cannot connect to {}: {}",
                                                  FormatHostPort(address), status.message()));
  }
  return status;
}

Status Connection::ConnectTo(const addrinfo& info) {
  Close();
  fd_ = socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, info.ai_protocol);
  if (fd_ < 0) return Status(Code::kUnavailable, ErrnoText(errno));
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connect(fd_, info.ai_addr, info.ai_addrlen) == 0) return base::OkStatus();
  if (errno != EINPROGRESS) return Status(Code::kUnavailable, ErrnoText(errno));
  RETURN_IF_ERROR(Wait(POLLOUT, options_.connect_time_max));
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return Status(Code::kUnavailable, ErrnoText(error));
  return base::OkStatus();
}

Status Connection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    ASSIGN_OR_RETURN(const short events, Wait(POLLOUT | POLLIN, options_.silence_max));
    // An answer before the request is sent is a refusal: read it. A close is seen by Receive.
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) return base::OkStatus();
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return base::OkStatus();
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      return Status(Code::kUnavailable, "sending the request: " + ErrnoText(errno));
    }
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return base::OkStatus();
}

Result<size_t> Connection::Receive(std::span<char> buffer) {
  for (;;) {
    RETURN_IF_ERROR(Wait(POLLIN, options_.silence_max));
    const ssize_t size = recv(fd_, buffer.data(), buffer.size(), 0);
    if (size >= 0) return static_cast<size_t>(size);
    if (errno == EAGAIN || errno == EINTR) continue;
    return Status(Code::kUnavailable, "reading the answer: " + ErrnoText(errno));
  }
}

Result<std::string> RenderRequest(const HttpClientRequest& request) {
  std::string wire =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", MethodName(request.method),
                  request.url.target, request.url.host_header);
  for (const HttpHeaders::Field& field : request.headers.fields()) {
    const auto breaks_line = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
    if (std::any_of(field.name.begin(), field.name.end(), breaks_line) ||
        std::any_of(field.value.begin(), field.value.end(), breaks_line)) {
      return base::InvalidArgument("", fmt::format("the header {} has a line break", field.name));
    }
    fmt::format_to(std::back_inserter(wire), "{}: {}\r\n", field.name, field.value);
  }
  if (!request.body.empty() || request.method == HttpMethod::kPost) {
    fmt::format_to(std::back_inserter(wire), "Content-Length: {}\r\n", request.body.size());
  }
  wire.append("\r\n").append(request.body);
  return wire;
}

}  // namespace

CancelToken::CancelToken() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(fd_ >= 0) << "eventfd: " << errno;
}
CancelToken::~CancelToken() { close(fd_); }

void CancelToken::Cancel() {
  const int saved_errno = errno;
  const uint64_t one = 1;
  // Fails only when the counter is full, and then it is cancelled already.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
  errno = saved_errno;
}

void CancelToken::Reset() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = read(fd_, &count, sizeof(count));
}

Status FetchStream(const HttpClientRequest& request, const HttpClientOptions& options,
                   const base::Clock& clock, CancelToken* cancel, const HttpBodySink& sink) {
  ASSIGN_OR_RETURN(const std::string wire, RenderRequest(request));
  Connection connection(options, clock, cancel);
  RETURN_IF_ERROR(connection.Connect(request.url.address));
  RETURN_IF_ERROR(connection.Send(wire));

  const Status stopped(Code::kCancelled, "stopped by the receiver");
  ResponseParser parser(request.method == HttpMethod::kHead, options.header_bytes_max);
  std::array<char, 16 << 10> buffer;
  std::string body;
  bool head_given = false;
  while (!parser.done()) {
    ASSIGN_OR_RETURN(const size_t size, connection.Receive(buffer));
    body.clear();
    if (size == 0) {
      RETURN_IF_ERROR(parser.End());
    } else {
      RETURN_IF_ERROR(parser.Feed({buffer.data(), size}, body));
    }
    if (parser.has_head() && !std::exchange(head_given, true)) {
      if (sink.on_head && !sink.on_head(parser.head())) return stopped;
    }
    if (!body.empty() && sink.on_body && !sink.on_body(body)) return stopped;
  }
  return base::OkStatus();
}

Result<HttpResponse> Fetch(const HttpClientRequest& request, const HttpClientOptions& options,
                           const base::Clock& clock, CancelToken* cancel) {
  HttpResponse response;
  bool too_large = false;
  const HttpBodySink sink = {
      .on_head =
          [&](const HttpResponse& head) {
            response = head;
            return true;
          },
      .on_body =
          [&](std::string_view bytes) {
            too_large = response.body.size() + bytes.size() > options.body_bytes_max;
            if (!too_large) response.body.append(bytes);
            return !too_large;
          },
  };
  const Status status = FetchStream(request, options, clock, cancel, sink);
  if (too_large) {
    return base::InvalidArgument(
        "", fmt::format("the answer is larger than {} bytes", options.body_bytes_max));
  }
  RETURN_IF_ERROR(status);
  return response;
}

}  // namespace plumb::net
