// net/http_connection.h
// Internal to net. One connection from accept to close: read, parse, hand to the handler, write the
// answer, again. A read is pending in every phase, which is how a client that leaves is noticed;
// one timer guards whatever the phase waits for. Thread: one strand per connection, on the server's
// I/O threads.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"
#include "net/asio.h"
#include "net/body_ledger.h"
#include "net/http_server.h"
#include "net/outbox.h"
#include "net/request_parser.h"

namespace plumb::net {

class HttpConnection;

// What the connections of one server share.
struct HttpServerCore {
  HttpServerCore(HttpServerOptions server_options, HttpHandler& request_handler)
      : options(std::move(server_options)), handler(request_handler) {}

  const HttpServerOptions options;
  HttpHandler& handler;  // not used once every connection is closed
  asio::io_context io;
  const std::shared_ptr<std::atomic<bool>> draining = std::make_shared<std::atomic<bool>>(false);

  BodyLedger bodies{options.limits.bodies_bytes_max};

  std::atomic<uint64_t> connections_accepted{0};
  std::atomic<uint64_t> connections_refused{0};
  std::atomic<uint64_t> connections_displaced{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> refusals{0};
  std::atomic<uint64_t> disconnects{0};
  std::atomic<uint64_t> write_stalls{0};

  base::Mutex mutex;
  std::set<std::shared_ptr<HttpConnection>> connections GUARDED_BY(mutex);  // the owner of each
  // Those that may be closed for a new one, longest first: they wait for a whole header, or only
  // read off what a refused client still sends.
  std::list<HttpConnection*> closable GUARDED_BY(mutex);
  size_t closing GUARDED_BY(mutex) = 0;  // chosen for that, and still in `connections`
  bool stopping GUARDED_BY(mutex) = false;
  uint64_t busy GUARDED_BY(mutex) = 0;  // exchanges begun and neither sent nor closed
  base::Condition idle;                 // none is busy
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::shared_ptr<HttpServerCore> core, asio::ip::tcp::socket socket);

  // Serves requests, or (`refuse`) answers 503 and closes. Thread: any, once.
  void Start(bool refuse);
  // Cuts the connection, soon. Thread: any.
  void PostClose();
  // Closes, soon, the longest closable connection, unless a whole header comes before that. False
  // when there is none. Thread: any.
  static bool MakeRoom(HttpServerCore& core);

 private:
  enum class Phase { kIdle, kHeader, kBody, kAnswering, kRefusing, kLingering, kClosed };
  enum class CloseKind { kOrderly, kReset };

  void Begin(bool refuse);
  void Read();
  void OnReadable(ErrorCode error);
  void OnPeerLeft(ErrorCode error);
  void ProcessInput();
  void Enter(Phase phase, base::Duration time_max);
  void SetClosable(bool closable);
  void CloseIfClosable();
  void Dispatch();
  void ReceiveBody();
  bool RefusesToDrain(const HttpRequest& request);
  bool Admit();
  BodyLedger::Verdict CountBody(uint64_t bytes);

  void Refuse(int status, std::string_view message);
  void AnswerAndClose(HttpResponse response);
  void Wake();
  void Flush();
  bool TakeFromOutbox();
  void Cut();
  void WriteSome();
  void OnWritten(ErrorCode error, size_t size);
  void FinishAnswer();

  void ArmTimer(base::Duration time_max);
  void StopTimer();
  void OnTimer();
  void Linger();
  void Close(CloseKind kind);
  void EndBusy();
  uint64_t writing_bytes() const {
    return writing_.size() + (writing_file_ ? writing_file_->bytes().size() : 0);
  }

  const std::shared_ptr<HttpServerCore> core_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  uint64_t timer_generation_ = 0;  // a late timer of an earlier generation is ignored
  const std::string peer_;
  Phase phase_ = Phase::kIdle;

  RequestParser parser_;
  bool reading_ = false;
  bool peer_finished_ = false;  // its FIN came while our complete answer was on its way

  std::shared_ptr<Outbox> outbox_;  // while kAnswering
  std::string own_output_;          // 100 Continue and refusals
  std::string writing_;
  std::shared_ptr<const base::MappedFile> writing_file_;  // written after writing_; null: nothing
  uint64_t written_ = 0;                                  // of both
  bool write_pending_ = false;
  bool writing_outbox_ = false;  // writing_ came from outbox_
  bool answer_ended_ = false;    // writing_ is the last of the answer
  bool answer_keep_alive_ = false;
  bool counted_busy_ = false;
  uint64_t counted_body_bytes_ = 0;  // ours in core_->bodies
  uint32_t account_ = 0;             // whose they are
  // Under core_->mutex. This connection's place in core_->closable while it has one, else in
  // `unlisted_`: it moves between the two, so that nothing is allocated for a request.
  std::list<HttpConnection*> unlisted_{this};
  const std::list<HttpConnection*>::iterator place_ = unlisted_.begin();
  bool chosen_ = false;  // one of core_->closing
};

}  // namespace plumb::net
