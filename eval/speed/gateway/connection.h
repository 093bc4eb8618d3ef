// eval/speed/gateway/connection.h
// One client's socket: sends a request, and knows when its answer is there. It never waits; whoever
// owns it does (gateway_load.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plumb::speed {

// A resource type. Thread: one at a time.
class Connection {
 public:
  // Connected to 127.0.0.1, and not blocking from then on.
  static base::Result<Connection> Open(uint16_t port);
  ~Connection();
  Connection(Connection&& other) noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection& operator=(Connection&&) = delete;

  int fd() const { return fd_; }
  // The answer before has come whole.
  void Send(std::string request);
  // Writes and reads what the socket takes and has. kUnavailable: it was closed; kCorrupt: the
  // answer is none with status 200 that says how long it is.
  base::Status Move();

  // Not all of the request is sent: the socket takes no more for now.
  bool wants_to_write() const { return written_ < request_.size(); }
  // With Content-Length or the last chunk.
  bool complete() const { return complete_; }
  // An event of a stream has come.
  bool has_event() const { return answer_.find("\ndata: ") != answer_.npos; }

 private:
  explicit Connection(int fd) : fd_(fd) {}
  base::Status Write();
  base::Status Read();
  base::Status Judge();

  int fd_;
  std::string request_;
  size_t written_ = 0;
  std::string answer_;
  bool complete_ = false;
};

}  // namespace plumb::speed
