// net/http_connection.cc
// The life of a connection, in the order in which it happens. Handlers of Asio hold a shared_ptr,
// so that the object outlives what it waits for; the answering side only ever posts (Wake), so
// nothing here recurses however many requests are pipelined.
#include "net/http_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace plumb::net {

namespace {

constexpr size_t kReadBytes = 64 << 10;  // at once, on the stack
// Of a file, in one go: what is not in memory is read on the I/O thread, beside other connections.
constexpr uint64_t kFileBytesAtOnce = 128u << 10;

// Thin: the destructor is what an Outbox cannot have, since the connection shares it.
class Exchange final : public HttpExchange {
 public:
  explicit Exchange(std::shared_ptr<Outbox> outbox) : outbox_(std::move(outbox)) {}
  ~Exchange() override { outbox_->Abandon(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void Respond(HttpResponse response) override { outbox_->Respond(std::move(response)); }
  void RespondFile(HttpResponse response, std::shared_ptr<const base::MappedFile> file) override {
    outbox_->Respond(std::move(response), std::move(file));
  }
  void StartStream(int status, HttpHeaders headers) override {
    outbox_->StartStream(status, headers);
  }
  bool Write(std::string_view bytes) override { return outbox_->Write(bytes); }
  void EndStream() override { outbox_->EndStream(); }
  void EndStreamWith(std::string_view last) override { outbox_->EndStream(last); }
  void OnClose(std::function<void()> callback) override { outbox_->OnClose(std::move(callback)); }
  bool closed() const override { return outbox_->closed(); }

 private:
  const std::shared_ptr<Outbox> outbox_;
};

std::string PeerOf(const asio::ip::tcp::socket& socket) {
  ErrorCode error;
  const auto endpoint = socket.remote_endpoint(error);
  return error ? std::string() : endpoint.address().to_string();
}

bool Contains(const std::vector<std::string>& paths, const std::string& path) {
  for (const std::string& candidate : paths) {
    if (candidate == path) return true;
  }
  return false;
}

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<HttpServerCore> core, asio::ip::tcp::socket socket)
    : core_(std::move(core)),
      socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      peer_(PeerOf(socket_)),
      parser_(core_->options.limits) {}

void HttpConnection::Start(bool refuse) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), refuse] { self->Begin(refuse); });
}

void HttpConnection::Begin(bool refuse) {
  ErrorCode ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  if (refuse) {
    core_->connections_refused.fetch_add(1, std::memory_order_relaxed);
    Refuse(503, "The server has too many connections.");
  } else {
    ArmTimer(core_->options.limits.idle_time_max);
    SetClosable(true);
  }
  Read();
}

void HttpConnection::PostClose() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    // An answer that is complete stays in the kernel's hands and is delivered.
    const bool cuts = self->phase_ == Phase::kAnswering;
    self->Close(cuts ? CloseKind::kReset : CloseKind::kOrderly);
  });
}

bool HttpConnection::MakeRoom(HttpServerCore& core) {
  std::shared_ptr<HttpConnection> chosen;
  {
    base::MutexLock lock(core.mutex);
    if (core.closable.empty()) return false;
    chosen = core.closable.front()->shared_from_this();
    chosen->unlisted_.splice(chosen->unlisted_.end(), core.closable, chosen->place_);
    chosen->chosen_ = true;
    ++core.closing;
  }
  core.connections_displaced.fetch_add(1, std::memory_order_relaxed);
  asio::post(chosen->socket_.get_executor(), [chosen] { chosen->CloseIfClosable(); });
  return true;
}

void HttpConnection::CloseIfClosable() {
  if (phase_ == Phase::kIdle || phase_ == Phase::kHeader || phase_ == Phase::kLingering)
    return Close(CloseKind::kOrderly);
  base::MutexLock lock(core_->mutex);
  if (std::exchange(chosen_, false)) --core_->closing;
}

void HttpConnection::SetClosable(bool closable) {
  HttpServerCore& core = *core_;
  base::MutexLock lock(core.mutex);
  const bool is = unlisted_.empty();
  if (is == closable) return;
  // A Shutdown may have closed it before it began.
  if (closable && (chosen_ || phase_ == Phase::kClosed)) return;
  std::list<HttpConnection*>& from = is ? core.closable : unlisted_;
  std::list<HttpConnection*>& to = is ? unlisted_ : core.closable;
  to.splice(to.end(), from, place_);
}

void HttpConnection::Read() {
  if (reading_ || peer_finished_ || phase_ == Phase::kClosed) return;
  reading_ = true;
  // For bytes, not for a read of them: a connection that waits, as most do, holds no buffer.
  socket_.async_wait(asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this()](ErrorCode error) { self->OnReadable(error); });
}

void HttpConnection::OnReadable(ErrorCode error) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  std::array<char, kReadBytes> input;
  const size_t size = error ? 0 : socket_.read_some(asio::buffer(input), error);
  if (error == asio::error::would_block) return Read();
  if (error) return OnPeerLeft(error);
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kHeader:
    case Phase::kBody:
      parser_.Append({input.data(), size});
      ProcessInput();
      break;
    case Phase::kAnswering:
      parser_.Append({input.data(), size});
      if (parser_.buffered_bytes() > core_->options.limits.pipeline_bytes_max) {
        return Close(CloseKind::kReset);
      }
      break;
    case Phase::kRefusing:
    case Phase::kLingering:
    case Phase::kClosed:
      break;  // read off and forgotten
  }
  Read();
}

void HttpConnection::OnPeerLeft(ErrorCode error) {
  const bool answer_complete =
      phase_ == Phase::kRefusing || (phase_ == Phase::kAnswering && outbox_->ended());
  if (error == asio::error::eof && answer_complete) {
    peer_finished_ = true;
    return;
  }
  Close(phase_ == Phase::kAnswering ? CloseKind::kReset : CloseKind::kOrderly);
}

void HttpConnection::ProcessInput() {
  const HttpLimits& limits = core_->options.limits;
  const RequestParser::Phase parsed = parser_.Advance();
  SetClosable(parsed == RequestParser::Phase::kIdle || parsed == RequestParser::Phase::kHeader);
  switch (parsed) {
    case RequestParser::Phase::kIdle:
      return Enter(Phase::kIdle, limits.idle_time_max);
    case RequestParser::Phase::kHeader:
      return Enter(Phase::kHeader, limits.header_time_max);
    case RequestParser::Phase::kBody:
      return ReceiveBody();
    case RequestParser::Phase::kDone:
      return Dispatch();
    case RequestParser::Phase::kRefused:
      return Refuse(parser_.refusal().status, parser_.refusal().message);
  }
}

// The time of a phase counts from its beginning, however many bytes drip in.
void HttpConnection::Enter(Phase phase, base::Duration time_max) {
  if (phase_ == phase) return;
  phase_ = phase;
  ArmTimer(time_max);
}

void HttpConnection::ReceiveBody() {
  const bool is_new = phase_ != Phase::kBody;
  if (is_new && !Admit()) return;
  // Who has a share is let in with all that is announced, and not cut off in the middle because
  // another has begun since; of nobody, only what came counts, or announcing would cost nothing.
  switch (CountBody(account_ == 0 ? parser_.body_bytes() : parser_.body_bytes_announced())) {
    case BodyLedger::Verdict::kAllTooMuch:
      return Refuse(503, "The server is receiving too much at once.");
    case BodyLedger::Verdict::kAccountTooMuch:
      return Refuse(429, "Too much is being sent at once with this key; let some of it end first.");
    case BodyLedger::Verdict::kFits:
      break;
  }
  if (is_new) {
    if (parser_.expects_continue()) own_output_ = "HTTP/1.1 100 Continue\r\n\r\n";
    Enter(Phase::kBody, parser_.body_time_max());
  }
  Flush();
}

// Whether the request comes too late; it has been refused then.
bool HttpConnection::RefusesToDrain(const HttpRequest& request) {
  if (!*core_->draining || Contains(core_->options.drain_paths, request.path)) return false;
  Refuse(503, "The server is stopping; retry later or elsewhere.");
  return true;
}

// Asks whether the body is to be received at all. False when not, which has been dealt with.
bool HttpConnection::Admit() {
  const HttpRequest& head = parser_.head();
  if (RefusesToDrain(head)) return false;
  HttpAdmission admission = core_->handler.Admit(head);
  if (admission.answer) {
    AnswerAndClose(*std::move(admission.answer));
    return false;
  }
  if (parser_.LimitBody(admission.body_bytes_max) == RequestParser::Phase::kRefused) {
    Refuse(parser_.refusal().status, parser_.refusal().message);
    return false;
  }
  account_ = admission.account;
  return true;
}

// Sets this connection's part of the bodies being received.
BodyLedger::Verdict HttpConnection::CountBody(uint64_t bytes) {
  return core_->bodies.Set(account_, std::exchange(counted_body_bytes_, bytes), bytes);
}

void HttpConnection::Dispatch() {
  StopTimer();
  CountBody(0);
  account_ = 0;
  if (write_pending_) ArmTimer(core_->options.limits.write_stall_max);  // 100 Continue
  HttpRequest request = parser_.TakeRequest();
  request.peer = peer_;
  const bool drains = *core_->draining;
  if (RefusesToDrain(request)) return;
  phase_ = Phase::kAnswering;
  core_->requests.fetch_add(1, std::memory_order_relaxed);
  if (!drains) {
    base::MutexLock lock(core_->mutex);
    ++core_->busy;
    counted_busy_ = true;
  }
  const OutboxOptions options = {.is_http10 = parser_.is_http10(),
                                 .is_head = request.method == HttpMethod::kHead,
                                 .keep_alive = parser_.keep_alive(),
                                 .output_bytes_max = core_->options.limits.output_bytes_max,
                                 .draining = core_->draining};
  outbox_ = std::make_shared<Outbox>(options, [self = shared_from_this()] {
    asio::post(self->socket_.get_executor(), [self] { self->Wake(); });
  });
  core_->handler.OnRequest(std::move(request), std::make_unique<Exchange>(outbox_));
}

void HttpConnection::Refuse(int status, std::string_view message) {
  core_->refusals.fetch_add(1, std::memory_order_relaxed);
  HttpResponse response = core_->handler.FormatRefusal({status, message});
  if ((status == 503 || status == 429) && response.headers.Count("Retry-After") == 0) {
    response.headers.Add("Retry-After", std::to_string(core_->options.limits.retry_after_s));
  }
  AnswerAndClose(std::move(response));
}

// What the request has not sent yet is read off and forgotten, for a while (Linger).
void HttpConnection::AnswerAndClose(HttpResponse response) {
  const bool is_head = parser_.head().method == HttpMethod::kHead;
  phase_ = Phase::kRefusing;
  CountBody(0);
  parser_.Discard();
  own_output_ += RenderHead(response.status, response.headers, response.body.size(), false, false,
                            HttpDate(base::SystemClock().UnixSeconds()));
  if (!is_head) own_output_ += response.body;
  ArmTimer(core_->options.limits.write_stall_max);
  Flush();
}

void HttpConnection::Wake() {
  if (phase_ != Phase::kAnswering) return;  // a late wake of an answer that is over
  if (outbox_->Woken()) return Cut();
  Flush();
}

// Starts the next write, or, with nothing left to write, does what follows.
void HttpConnection::Flush() {
  if (write_pending_ || phase_ == Phase::kClosed) return;
  writing_.clear();
  writing_file_.reset();
  written_ = 0;
  writing_outbox_ = false;
  if (!own_output_.empty()) {
    writing_ = std::exchange(own_output_, {});
  } else if (phase_ == Phase::kAnswering) {
    if (!TakeFromOutbox()) return;
  }
  if (writing_bytes() > 0) return WriteSome();
  if (phase_ == Phase::kRefusing) return Linger();
  if (phase_ != Phase::kAnswering) return;
  StopTimer();
  if (answer_ended_) FinishAnswer();
}

// False when the answer came to an early end, which has been dealt with.
bool HttpConnection::TakeFromOutbox() {
  Outbox::Taken taken = outbox_->Take(writing_);
  if (taken.cut) {
    Cut();
    return false;
  }
  if (taken.unanswered) {
    outbox_->Close();
    outbox_.reset();
    EndBusy();
    Refuse(500, "The request was dropped.");
    return false;
  }
  writing_outbox_ = true;
  writing_file_ = std::move(taken.file);
  answer_ended_ = taken.ended;
  answer_keep_alive_ = taken.keep_alive;
  return true;
}

void HttpConnection::Cut() {
  if (outbox_->overflowed()) core_->write_stalls.fetch_add(1, std::memory_order_relaxed);
  Close(CloseKind::kReset);
}

void HttpConnection::WriteSome() {
  write_pending_ = true;
  // In kBody (100 Continue) the body's own time keeps running.
  if (phase_ != Phase::kBody) ArmTimer(core_->options.limits.write_stall_max);
  const uint64_t of_file = written_ < writing_.size() ? 0 : written_ - writing_.size();
  const auto rest =
      written_ < writing_.size()
          ? asio::buffer(writing_.data() + written_, writing_.size() - written_)
          : asio::buffer(writing_file_->bytes().data() + of_file,
                         std::min<uint64_t>(writing_bytes() - written_, kFileBytesAtOnce));
  socket_.async_write_some(rest, [self = shared_from_this()](ErrorCode error, size_t size) {
    self->OnWritten(error, size);
  });
}

void HttpConnection::OnWritten(ErrorCode error, size_t size) {
  write_pending_ = false;
  if (phase_ == Phase::kClosed) return;
  if (error) return Close(CloseKind::kReset);
  written_ += size;
  if (writing_outbox_ && outbox_) outbox_->Sent(size);
  if (written_ < writing_bytes()) return WriteSome();
  Flush();
}

void HttpConnection::FinishAnswer() {
  outbox_->Close();
  outbox_.reset();
  answer_ended_ = false;
  EndBusy();
  if (!answer_keep_alive_ || peer_finished_) return Linger();
  parser_.Next();
  phase_ = Phase::kAnswering;  // any other than kIdle, so that Enter arms the timer
  ProcessInput();
}

void HttpConnection::EndBusy() {
  if (!std::exchange(counted_busy_, false)) return;
  base::MutexLock lock(core_->mutex);
  if (--core_->busy == 0) core_->idle.NotifyAll();
}

void HttpConnection::ArmTimer(base::Duration time_max) {
  timer_.expires_after(std::chrono::nanoseconds(time_max.ns));
  timer_.async_wait([self = shared_from_this(), generation = ++timer_generation_](ErrorCode error) {
    if (!error && generation == self->timer_generation_) self->OnTimer();
  });
}

void HttpConnection::StopTimer() {
  ++timer_generation_;
  timer_.cancel();
}

void HttpConnection::OnTimer() {
  switch (phase_) {
    case Phase::kHeader:
      return Refuse(408, "The header did not come in time.");
    case Phase::kBody:
      return Refuse(408, "The body did not come in time.");
    case Phase::kAnswering:
      core_->write_stalls.fetch_add(1, std::memory_order_relaxed);
      return Close(CloseKind::kReset);
    case Phase::kIdle:
    case Phase::kRefusing:
    case Phase::kLingering:
      return Close(CloseKind::kOrderly);
    case Phase::kClosed:
      return;
  }
}

// Closing with unread bytes would send a reset, which can destroy the answer before the client has
// read it: so finish our side, and read off theirs for a while.
void HttpConnection::Linger() {
  if (peer_finished_) return Close(CloseKind::kOrderly);
  ErrorCode error;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (error) return Close(CloseKind::kOrderly);
  Enter(Phase::kLingering, core_->options.limits.linger_max);
  SetClosable(true);
}

void HttpConnection::Close(CloseKind kind) {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  CountBody(0);
  StopTimer();
  SetClosable(false);
  ErrorCode ignored;
  // A reset, so that a stream that only its end delimits (HTTP/1.0) is not taken for complete.
  if (kind == CloseKind::kReset) {
    socket_.set_option(asio::ip::tcp::socket::linger(true, 0), ignored);
  }
  socket_.close(ignored);
  if (outbox_) {
    core_->disconnects.fetch_add(1, std::memory_order_relaxed);
    const std::function<void()> on_close = outbox_->Close();
    outbox_.reset();
    if (on_close) on_close();
  }
  {
    base::MutexLock lock(core_->mutex);
    core_->connections.erase(shared_from_this());
    if (std::exchange(chosen_, false)) --core_->closing;
  }
  EndBusy();  // last: whoever waits for idle finds everything else done
}

}  // namespace plumb::net
