// api/line_exchange.h
// An exchange without a connection: a line of a batch is asked as any client would ask, and this
// takes the answer. The other end, LineCall, can leave as a client does, which cancels the request.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "net/http_server.h"

namespace plumb::api {

// The batch's end of an exchange. A resource type. Thread: any.
class LineCall {
 public:
  // Gives up waiting: runs the exchange's OnClose unless the answer has come.
  void Leave();

 private:
  friend class LineExchange;
  base::Mutex mutex_;
  bool left_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::function<void()> on_close_ GUARDED_BY(mutex_);
};

// A resource type. Thread: as net::HttpExchange.
class LineExchange final : public net::HttpExchange {
 public:
  // Called once, with the answer; 500 when the exchange is dropped without one. Must not block.
  using Done = std::function<void(net::HttpResponse response)>;

  LineExchange(std::shared_ptr<LineCall> call, Done done)
      : call_(std::move(call)), done_(std::move(done)) {}
  ~LineExchange() override;
  LineExchange(const LineExchange&) = delete;
  LineExchange& operator=(const LineExchange&) = delete;

  void Respond(net::HttpResponse response) override;
  // Lines that ask for a stream are refused before they are sent; one that came all the same would
  // be collected like this.
  void StartStream(int status, net::HttpHeaders headers) override;
  bool Write(std::string_view bytes) override;
  void EndStream() override;
  void OnClose(std::function<void()> callback) override;
  bool closed() const override;

 private:
  void End(net::HttpResponse response);

  const std::shared_ptr<LineCall> call_;
  const Done done_;
  bool answered_ = false;
  net::HttpResponse stream_;
};

}  // namespace plumb::api
