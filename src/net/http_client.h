// net/http_client.h
// A small blocking HTTP/1.1 client for the command line and for tests: one request per connection,
// every wait bounded, stoppable from another thread or a signal handler. Plain http only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/address.h"
#include "net/http.h"

namespace plumb::net {

// Stops the call that it was given to, now or later. Reusable after Reset. A resource type.
class CancelToken {
 public:
  CancelToken();
  ~CancelToken();
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  // Thread: any; also from a signal handler.
  void Cancel();
  void Reset();  // not while a call uses it
  int fd() const { return fd_; }

 private:
  int fd_;
};

struct HttpClientRequest {
  HttpMethod method = HttpMethod::kGet;
  HttpUrl url;
  HttpHeaders headers;  // Host, Content-Length and Connection are added
  std::string body;
};

struct HttpClientOptions {
  base::Duration connect_time_max = base::Seconds(10);  // name lookup not included
  base::Duration silence_max = base::Seconds(300);      // nothing sent or received for so long
  uint64_t body_bytes_max = 64 << 20;                   // of the answer, when it is kept
  uint32_t header_bytes_max = 64 << 10;
};

// Status and headers first, then the body piece by piece; return false to stop (kCancelled).
struct HttpBodySink {
  std::function<bool(const HttpResponse& head)> on_head;
  std::function<bool(std::string_view bytes)> on_body;
};

// Thread: any; each call is its own. The whole answer, whatever its status.
// kUnavailable: not reachable, or the connection ended early; kDeadline: a time limit; kCancelled;
// kInvalidArgument: the answer is larger than allowed; kCorrupt: the answer is not HTTP.
base::Result<HttpResponse> Fetch(const HttpClientRequest& request, const HttpClientOptions& options,
                                 const base::Clock& clock, CancelToken* cancel);

// As Fetch, but the body goes to the sink as it comes; ok when the answer is complete.
base::Status FetchStream(const HttpClientRequest& request, const HttpClientOptions& options,
                         const base::Clock& clock, CancelToken* cancel, const HttpBodySink& sink);

}  // namespace plumb::net
