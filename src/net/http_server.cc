// net/http_server.cc
// The listening socket, the I/O threads and their end; what happens on a connection is in
// http_connection.cc. The I/O loop is never stopped by force: Shutdown closes everything that could
// wait, and the loop runs out of work, so that no posted call is left behind.
#include "net/http_server.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/disk.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "net/asio.h"
#include "net/http_connection.h"

namespace plumb::net {

using asio::ip::tcp;
using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr uint32_t kThreadsMax = 64;
// Connections above connections_max that are told 503; above this too they are closed unheard.
constexpr uint32_t kRefusalsMax = 64;
// After accept failed (no file descriptors left), until the next try.
constexpr std::chrono::milliseconds kAcceptPause{100};

Result<tcp::endpoint> ToEndpoint(const std::string& host, uint16_t port) {
  ErrorCode error;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) {
    return InvalidArgument("--host", fmt::format("'{}' is not a numeric address; give one, such as "
                                                 "127.0.0.1 or ::1, or localhost",
                                                 host));
  }
  return tcp::endpoint(address, port);
}

Status ListenError(const ErrorCode& error, const HttpServerOptions& options) {
  if (error == asio::error::address_in_use) {
    return InvalidArgument("--port", fmt::format("port {} of {} is already in use; stop the other "
                                                 "program or give another --port (0 picks one)",
                                                 options.port, options.host));
  }
  if (error == asio::error::access_denied) {
    return InvalidArgument(
        "--port", fmt::format("port {} needs privileges; give one above 1023", options.port));
  }
  return InvalidArgument("--host", fmt::format("cannot listen on {} port {}: {}", options.host,
                                               options.port, error.message()));
}

Status CheckOptions(const HttpServerOptions& options) {
  if (options.threads < 1 || options.threads > kThreadsMax) {
    return InvalidArgument("threads", fmt::format("{} I/O threads; allowed are 1 to {}",
                                                  options.threads, kThreadsMax));
  }
  const HttpLimits& limits = options.limits;
  for (base::Duration time : {limits.header_time_max, limits.body_time_max, limits.idle_time_max,
                              limits.write_stall_max, limits.linger_max}) {
    if (time.ns <= 0) return InvalidArgument("limits", "every time limit must be positive");
  }
  if (limits.connections_max == 0 || limits.header_bytes_max == 0 || limits.output_bytes_max == 0) {
    return InvalidArgument("limits", "connections, header and output limits must be positive");
  }
  return base::OkStatus();
}

}  // namespace

void HttpExchange::EndStreamWith(std::string_view last) {
  Write(last);
  EndStream();
}

void HttpExchange::RespondFile(HttpResponse response,
                               std::shared_ptr<const base::MappedFile> file) {
  const auto bytes = file->bytes();
  response.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Respond(std::move(response));
}

HttpResponse HttpHandler::FormatRefusal(const HttpRefusal& refusal) const {
  return {.status = refusal.status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::string(refusal.message) + "\n"};
}

HttpAdmission HttpHandler::Admit(const HttpRequest&) { return {}; }

class HttpServer::Impl {
 public:
  Impl(HttpServerOptions options, HttpHandler& handler)
      : core_(std::make_shared<HttpServerCore>(std::move(options), handler)),
        acceptor_(asio::make_strand(core_->io)),
        accept_pause_(acceptor_.get_executor()) {}
  ~Impl() { Shutdown(); }

  Status Listen();
  void StartThreads();
  void Shutdown();

  HttpServerCore& core() { return *core_; }
  uint16_t port() const { return port_; }

 private:
  void Accept();
  void OnAccept(ErrorCode error, tcp::socket socket);

  const std::shared_ptr<HttpServerCore> core_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_pause_;
  uint16_t port_ = 0;
  base::Mutex shutdown_mutex_;  // two callers of Shutdown: the second waits for the first
  std::vector<base::Thread> threads_;
};

Status HttpServer::Impl::Listen() {
  const HttpServerOptions& options = core_->options;
  ASSIGN_OR_RETURN(const tcp::endpoint endpoint, ToEndpoint(options.host, options.port));
  ErrorCode error;
  acceptor_.open(endpoint.protocol(), error);
  if (error) return ListenError(error, options);
  // Lets a restarted server bind while old connections are in TIME_WAIT; two listeners still clash.
  acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  // "::" means IPv6 alone: exactly what was asked for.
  if (endpoint.address().is_v6()) acceptor_.set_option(asio::ip::v6_only(true), error);
  acceptor_.bind(endpoint, error);
  if (error) return ListenError(error, options);
  acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return ListenError(error, options);
  port_ = acceptor_.local_endpoint(error).port();
  return base::OkStatus();
}

void HttpServer::Impl::StartThreads() {
  Accept();
  for (uint32_t i = 0; i < core_->options.threads; ++i) {
    threads_.emplace_back(fmt::format("http-{}", i), [core = core_] { core->io.run(); });
  }
}

void HttpServer::Impl::Accept() {
  acceptor_.async_accept(asio::make_strand(core_->io), [this](ErrorCode error, tcp::socket socket) {
    OnAccept(error, std::move(socket));
  });
}

void HttpServer::Impl::OnAccept(ErrorCode error, tcp::socket socket) {
  if (!acceptor_.is_open()) return;
  if (error && error != asio::error::connection_aborted) {
    accept_pause_.expires_after(kAcceptPause);
    accept_pause_.async_wait([this](ErrorCode) {
      if (acceptor_.is_open()) Accept();
    });
    return;
  }
  if (!error) {
    core_->connections_accepted.fetch_add(1, std::memory_order_relaxed);
    auto connection = std::make_shared<HttpConnection>(core_, std::move(socket));
    bool full = false;
    {
      base::MutexLock lock(core_->mutex);
      if (core_->stopping) return;
      const uint32_t open_max = core_->options.limits.connections_max;
      const size_t open = core_->connections.size();
      full = open - core_->closing >= open_max;
      if (open < size_t{open_max} + kRefusalsMax) {
        core_->connections.insert(connection);
      } else {
        core_->connections_refused.fetch_add(1, std::memory_order_relaxed);
        connection.reset();
      }
    }
    if (full && HttpConnection::MakeRoom(*core_)) full = false;
    if (connection) connection->Start(full);
  }
  Accept();
}

void HttpServer::Impl::Shutdown() {
  base::MutexLock shutdown_lock(shutdown_mutex_);
  if (threads_.empty()) return;
  std::vector<std::shared_ptr<HttpConnection>> connections;
  {
    base::MutexLock lock(core_->mutex);
    core_->stopping = true;
    connections.assign(core_->connections.begin(), core_->connections.end());
  }
  asio::post(acceptor_.get_executor(), [this] {
    ErrorCode ignored;
    acceptor_.close(ignored);
    accept_pause_.cancel();
  });
  for (const auto& connection : connections) connection->PostClose();
  connections.clear();
  for (base::Thread& thread : threads_) thread.Join();
  threads_.clear();
  base::MutexLock lock(core_->mutex);
  CHECK(core_->connections.empty()) << core_->connections.size() << " connections outlive Shutdown";
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                      HttpHandler& handler) {
  RETURN_IF_ERROR(CheckOptions(options));
  auto impl = std::make_unique<Impl>(std::move(options), handler);
  RETURN_IF_ERROR(impl->Listen());
  impl->StartThreads();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->port(); }

void HttpServer::BeginDrain() { *impl_->core().draining = true; }

bool HttpServer::WaitIdle(base::Duration timeout) {
  HttpServerCore& core = impl_->core();
  base::MutexLock lock(core.mutex);
  return core.idle.WaitFor(lock, timeout, [&core]() HOLDS(core.mutex) { return core.busy == 0; });
}

void HttpServer::Shutdown() { impl_->Shutdown(); }

HttpServerStats HttpServer::stats() const {
  HttpServerCore& core = impl_->core();
  HttpServerStats stats;
  {
    base::MutexLock lock(core.mutex);
    stats.connections_open = core.connections.size();
  }
  stats.connections_accepted = core.connections_accepted;
  stats.connections_refused = core.connections_refused;
  stats.connections_displaced = core.connections_displaced;
  stats.requests = core.requests;
  stats.refusals = core.refusals;
  stats.disconnects = core.disconnects;
  stats.write_stalls = core.write_stalls;
  return stats;
}

}  // namespace plumb::net
