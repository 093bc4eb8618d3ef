// net/http_server.h
// HTTP/1.1 towards hostile clients: every byte, second and connection has a named limit, and a
// request reaches the handler only when it is whole, and admitted by its header. The one idea: an
// exchange may be answered from any thread, and a client that leaves is noticed at once, since a
// read is always pending. Read next: net/http_connection.h (one connection's life),
// net/request_parser.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/http.h"

namespace plumb::base {
class MappedFile;  // base/disk.h
}

namespace plumb::net {

// The answer to one request. Either Respond, or StartStream, Write..., EndStream; a call out of
// this order is a bug (CHECK). Destroyed before it was answered: 500 when nothing was sent, else
// the connection is cut, so that a truncated stream never looks complete. Thread: any, one at a
// time; nothing here blocks. May outlive the server (it is then closed).
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  // The whole answer. The body is not counted against output_bytes_max.
  virtual void Respond(HttpResponse response) = 0;
  // Likewise, with the file's bytes after the body, taken from the map as the client reads them: a
  // large file costs no memory of ours, however many ask for it. It must not shrink meanwhile.
  // Here, for exchanges without a connection: it becomes part of the body.
  virtual void RespondFile(HttpResponse response, std::shared_ptr<const base::MappedFile> file);

  // A body of unknown length: chunked (HTTP/1.1) or ended by closing (HTTP/1.0).
  virtual void StartStream(int status, HttpHeaders headers) = 0;
  // Appends bytes, sent as soon as the socket takes them; empty is allowed and sends nothing. False
  // once the client is gone or was cut (output_bytes_max): the bytes are dropped, stop producing.
  virtual bool Write(std::string_view bytes) = 0;
  virtual void EndStream() = 0;
  // Likewise, behind these bytes; as a whole answer's they are not counted against
  // output_bytes_max. Here, for exchanges that count nothing: Write, EndStream.
  virtual void EndStreamWith(std::string_view last);

  // `callback` runs at most once, on an I/O thread, when the connection ends before Respond or
  // EndStream was called: client left, write failed, client reads too slowly, Shutdown. When that
  // has already happened it runs inside this call. It must not block, and may still be running
  // while the exchange is destroyed, so it captures values (a request id), not the exchange's
  // owner. At most one callback per exchange.
  virtual void OnClose(std::function<void()> callback) = 0;
  virtual bool closed() const = 0;
};

// Why the server itself refuses a request; net adds Retry-After and Connection.
struct HttpRefusal {
  int status;                // 400 408 413 414 417 429 431 500 501 503 505
  std::string_view message;  // for people; names no address or path
};

// What a handler makes of a request whose header is complete and whose body is still to come, so
// that nothing is received, or held in memory, for who may not send it.
struct HttpAdmission {
  // Set: it is answered with this and the connection closed; the rest of the body is not kept.
  std::optional<HttpResponse> answer;
  // Of this body; 413 above it. The limits of the server hold as well.
  uint64_t body_bytes_max = UINT64_MAX;
  // Who answers for the body's memory: one account's bodies, together, get at most as much as is
  // left for all others (base/share.h; 429). 0: nobody in particular.
  uint32_t account = 0;
};

// Thread: called on the I/O threads (one after another with threads = 1); must not block or throw.
// Lives until Shutdown has returned.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void OnRequest(HttpRequest request, std::unique_ptr<HttpExchange> exchange) = 0;
  // Asked once for a request whose body has not come whole with its header, before 100 Continue.
  // `head` has all but the body. What is refused here OnRequest must refuse too, since a body that
  // comes with its header is not asked for. Default: everything is received.
  virtual HttpAdmission Admit(const HttpRequest& head);
  // The body and content type of a refusal, in the dialect of the API. Default: plain text.
  virtual HttpResponse FormatRefusal(const HttpRefusal& refusal) const;
};

// Bodies of one path that may be larger than others, as uploads of files are.
struct BodyLimit {
  std::string path;  // exactly
  uint64_t bytes_max = 0;
  base::Duration time_max = base::Seconds(60);
};

struct HttpLimits {
  uint32_t target_bytes_max = 8 << 10;   // 414
  uint32_t header_bytes_max = 32 << 10;  // 431; request line and all fields
  uint32_t header_fields_max = 100;      // 431
  uint64_t body_bytes_max = 8 << 20;     // 413
  std::vector<BodyLimit> body_limits;    // instead of it and of body_time_max
  // Bodies not yet complete, over all connections; above it a request gets 503. One account
  // (HttpAdmission) has its share.
  uint64_t bodies_bytes_max = 256 << 20;
  // Bytes a client may send ahead of an unanswered request (pipelining); above it: cut.
  uint32_t pipeline_bytes_max = 64 << 10;
  // Bytes written by a stream and not yet taken by the socket; above it the client is cut.
  uint64_t output_bytes_max = 1 << 20;
  base::Duration header_time_max = base::Seconds(10);  // first byte to blank line; 408
  base::Duration body_time_max = base::Seconds(60);    // blank line to last byte; 408
  base::Duration idle_time_max = base::Seconds(75);  // between requests, and before the first: cut
  base::Duration write_stall_max = base::Seconds(30);  // socket takes nothing for so long: cut
  base::Duration linger_max = base::Seconds(2);        // reads off the rest before closing
  // Above it a new connection takes the place of the one that has waited longest without having
  // sent a whole header; where every one has, the new one gets 503 with Retry-After.
  uint32_t connections_max = 1024;
  uint32_t retry_after_s = 2;  // on 503, also while draining
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // a numeric address, or "localhost" (= 127.0.0.1)
  uint16_t port = 8000;            // 0: the system picks one, see HttpServer::port
  uint32_t threads = 1;            // I/O threads, [1, 64]; a connection's callbacks never overlap
  HttpLimits limits;
  // Paths answered by the handler even while draining ("/health", "/metrics").
  std::vector<std::string> drain_paths;
};

// Counts since start; a snapshot, each number exact, not taken at one moment.
struct HttpServerStats {
  uint64_t connections_open = 0;
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;    // connections_max, none could be closed
  uint64_t connections_displaced = 0;  // closed for a new one, without a whole header
  uint64_t requests = 0;               // handed to the handler
  uint64_t refusals = 0;               // answered by net itself
  uint64_t disconnects = 0;            // left before the answer was complete
  uint64_t write_stalls = 0;           // cut: output_bytes_max or write_stall_max
};

// A resource type; destroying it is Shutdown. Half-close: a client that shuts down its sending side
// before its answer is complete counts as gone, since TCP shows a closed and a half-closed client
// alike and an abandoned prompt must free its pages at once. Answers already given are delivered.
// Thread: any, for every method.
class HttpServer {
 public:
  // Binds exactly host:port and starts the I/O threads. `handler` is borrowed until Shutdown
  // returns. kInvalidArgument, field "--port" (in use, or needs privileges) or "--host" (not an
  // address, or not one of this machine).
  static base::Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options,
                                                         HttpHandler& handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;

  // From now on new requests (drain_paths excepted) get 503 with Retry-After and their connection
  // is closed; running ones go on. Listening continues, so that clients see 503, not a refusal.
  void BeginDrain();
  // Waits until every exchange has ended and its bytes were taken; false after `timeout`. New ones
  // may begin unless draining; drain_paths do not count.
  bool WaitIdle(base::Duration timeout);
  // Cuts what is left (OnClose runs) and joins. No callback runs after it returns. Idempotent. Not
  // from an I/O thread.
  void Shutdown();

  HttpServerStats stats() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumb::net
