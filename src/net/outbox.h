// net/outbox.h
// Internal to net. Where the thread that answers and the I/O thread meet: bytes framed for the wire
// on one side, taken by the connection on the other. One outbox per request. Thread: any; the only
// lock on a connection's path, held for a copy of bytes and never for I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/disk.h"
#include "base/mutex.h"
#include "net/http_server.h"

namespace plumb::net {

// What the answer's head depends on.
struct OutboxOptions {
  bool is_http10 = false;
  bool is_head = false;                               // a HEAD request: no body is sent
  bool keep_alive = false;                            // asked for by the client
  uint64_t output_bytes_max = 0;                      // for streams
  std::shared_ptr<const std::atomic<bool>> draining;  // set: every answer closes its connection
};

// Fields and status line of an answer, ready to send. `body_bytes`: nothing for a stream.
// CHECK: a field that net adds itself. Control bytes in values become spaces.
std::string RenderHead(int status, const HttpHeaders& headers, std::optional<uint64_t> body_bytes,
                       bool is_http10, bool keep_alive, const std::string& date);
// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 5.6.7).
std::string HttpDate(int64_t unix_seconds);

class Outbox {
 public:
  // `wake` makes the connection look again, later, on its own thread; called under the lock.
  Outbox(OutboxOptions options, std::function<void()> wake);

  // The answering side; see HttpExchange.
  void Respond(HttpResponse response, std::shared_ptr<const base::MappedFile> file = nullptr);
  void StartStream(int status, const HttpHeaders& headers);
  bool Write(std::string_view bytes);
  void EndStream(std::string_view last = {});
  void OnClose(std::function<void()> callback);
  void Abandon();  // the exchange is destroyed
  bool closed() const;

  // The connection's side.
  struct Taken {
    bool ended = false;  // after `bytes` and `file`, the answer is complete
    std::shared_ptr<const base::MappedFile> file;  // to be sent after `bytes`; null: none
    bool cut = false;         // output_bytes_max exceeded, or abandoned in mid-stream
    bool unanswered = false;  // abandoned before anything was sent
    bool keep_alive = false;
  };
  // A wake has arrived. True: cut the connection now, even in the middle of a write.
  bool Woken();
  // Moves the pending bytes to `bytes`; they count as pending until Sent.
  Taken Take(std::string& bytes);
  void Sent(size_t bytes);
  // No further wake. Returns the callback to run when the answer was not complete.
  std::function<void()> Close();
  bool ended() const;
  bool overflowed() const;

 private:
  enum class State { kUnanswered, kStreaming, kEnded };
  void WakeLocked() HOLDS(mutex_);
  bool MustCutLocked() const HOLDS(mutex_);
  void AppendChunkLocked(std::string_view bytes) HOLDS(mutex_);

  const OutboxOptions options_;
  const base::SystemClock clock_;  // for Date only
  mutable base::Mutex mutex_;
  std::function<void()> wake_ GUARDED_BY(mutex_);  // emptied by Close
  std::function<void()> on_close_ GUARDED_BY(mutex_);
  std::string pending_ GUARDED_BY(mutex_);
  std::shared_ptr<const base::MappedFile> pending_file_ GUARDED_BY(mutex_);  // after pending_
  uint64_t in_flight_bytes_ GUARDED_BY(mutex_) = 0;
  State state_ GUARDED_BY(mutex_) = State::kUnanswered;
  bool chunked_ GUARDED_BY(mutex_) = false;
  bool keep_alive_ GUARDED_BY(mutex_) = false;
  bool wake_pending_ GUARDED_BY(mutex_) = false;
  bool abandoned_ GUARDED_BY(mutex_) = false;
  bool overflowed_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace plumb::net
