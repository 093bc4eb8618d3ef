// net/outbox.cc
// Framing of answers, and the hand-over between threads; see outbox.h.
#include "net/outbox.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <optional>

namespace plumb::net {

namespace {

bool IsTokenChar(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsOurs(std::string_view name) {
  for (std::string_view ours : {"Content-Length", "Transfer-Encoding", "Connection", "Date"}) {
    if (EqualsIgnoreCase(name, ours)) return true;
  }
  return false;
}

// 204 and 304 have no body, hence no length either (RFC 9110 8.6).
bool MayHaveBody(int status) { return status != 204 && status != 304; }

}  // namespace

std::string HttpDate(int64_t unix_seconds) {
  constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const time_t seconds = unix_seconds;
  tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return HttpDate(0);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[parts.tm_wday],
                     parts.tm_mday, kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour,
                     parts.tm_min, parts.tm_sec);
}

std::string RenderHead(int status, const HttpHeaders& headers, std::optional<uint64_t> body_bytes,
                       bool is_http10, bool keep_alive, const std::string& date) {
  CHECK(status >= 200 && status <= 599) << status;
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", status, ReasonPhrase(status), date);
  for (const HttpHeaders::Field& field : headers.fields()) {
    CHECK(!field.name.empty() && !IsOurs(field.name)) << "header field '" << field.name << "'";
    for (char c : field.name) CHECK(IsTokenChar(c)) << "header field '" << field.name << "'";
    head.append(field.name).append(": ");
    for (char c : field.value) {
      const auto byte = static_cast<unsigned char>(c);
      head.push_back(byte < 0x20 || byte == 0x7f ? ' ' : c);
    }
    head.append("\r\n");
  }
  if (MayHaveBody(status)) {
    if (body_bytes) {
      head.append(fmt::format("Content-Length: {}\r\n", *body_bytes));
    } else if (!is_http10) {
      head.append("Transfer-Encoding: chunked\r\n");
    }
  }
  if (!keep_alive) head.append("Connection: close\r\n");
  head.append("\r\n");
  return head;
}

Outbox::Outbox(OutboxOptions options, std::function<void()> wake)
    : options_(options), wake_(std::move(wake)) {}

void Outbox::WakeLocked() {
  if (wake_pending_ || !wake_) return;
  wake_pending_ = true;
  wake_();
}

void Outbox::Respond(HttpResponse response, std::shared_ptr<const base::MappedFile> file) {
  base::MutexLock lock(mutex_);
  CHECK(state_ == State::kUnanswered) << "an exchange is answered once";
  keep_alive_ = options_.keep_alive && !*options_.draining;
  state_ = State::kEnded;
  on_close_ = nullptr;
  if (closed_) return;
  const uint64_t bytes = response.body.size() + (file ? file->bytes().size() : 0);
  pending_ = RenderHead(response.status, response.headers, bytes, options_.is_http10, keep_alive_,
                        HttpDate(clock_.UnixSeconds()));
  if (!options_.is_head && MayHaveBody(response.status)) {
    pending_.append(response.body);
    pending_file_ = std::move(file);
  }
  WakeLocked();
}

void Outbox::StartStream(int status, const HttpHeaders& headers) {
  base::MutexLock lock(mutex_);
  CHECK(MayHaveBody(status)) << status;
  CHECK(state_ == State::kUnanswered) << "an exchange is answered once";
  // The end of an HTTP/1.0 stream is the end of its connection.
  keep_alive_ = options_.keep_alive && !*options_.draining && !options_.is_http10;
  chunked_ = !options_.is_http10;
  state_ = State::kStreaming;
  if (closed_) return;
  pending_ = RenderHead(status, headers, std::nullopt, options_.is_http10, keep_alive_,
                        HttpDate(clock_.UnixSeconds()));
  WakeLocked();
}

bool Outbox::Write(std::string_view bytes) {
  base::MutexLock lock(mutex_);
  CHECK(state_ == State::kStreaming) << "Write needs StartStream before and no EndStream";
  if (closed_ || overflowed_) return false;
  if (bytes.empty() || options_.is_head) return true;
  if (pending_.size() + in_flight_bytes_ + bytes.size() > options_.output_bytes_max) {
    overflowed_ = true;
    pending_.clear();
    WakeLocked();
    return false;
  }
  AppendChunkLocked(bytes);
  WakeLocked();
  return true;
}

void Outbox::AppendChunkLocked(std::string_view bytes) {
  if (chunked_) fmt::format_to(std::back_inserter(pending_), "{:x}\r\n", bytes.size());
  pending_.append(bytes);
  if (chunked_) pending_.append("\r\n");
}

void Outbox::EndStream(std::string_view last) {
  base::MutexLock lock(mutex_);
  CHECK(state_ == State::kStreaming) << "EndStream needs StartStream before";
  state_ = State::kEnded;
  on_close_ = nullptr;
  if (closed_ || overflowed_) return;
  if (!last.empty() && !options_.is_head) AppendChunkLocked(last);
  if (chunked_ && !options_.is_head) pending_.append("0\r\n\r\n");
  WakeLocked();
}

void Outbox::OnClose(std::function<void()> callback) {
  {
    base::MutexLock lock(mutex_);
    CHECK(!on_close_) << "one OnClose callback per exchange";
    if (state_ == State::kEnded) return;
    if (!closed_) {
      on_close_ = std::move(callback);
      return;
    }
  }
  callback();
}

void Outbox::Abandon() {
  base::MutexLock lock(mutex_);
  on_close_ = nullptr;
  if (closed_ || state_ == State::kEnded) return;
  abandoned_ = true;
  WakeLocked();
}

bool Outbox::closed() const {
  base::MutexLock lock(mutex_);
  return closed_ || overflowed_;
}

bool Outbox::ended() const {
  base::MutexLock lock(mutex_);
  return state_ == State::kEnded;
}

bool Outbox::overflowed() const {
  base::MutexLock lock(mutex_);
  return overflowed_;
}

bool Outbox::MustCutLocked() const {
  return overflowed_ || (abandoned_ && state_ == State::kStreaming);
}

bool Outbox::Woken() {
  base::MutexLock lock(mutex_);
  wake_pending_ = false;
  return MustCutLocked();
}

Outbox::Taken Outbox::Take(std::string& bytes) {
  base::MutexLock lock(mutex_);
  bytes = std::exchange(pending_, {});
  std::shared_ptr<const base::MappedFile> file = std::exchange(pending_file_, nullptr);
  in_flight_bytes_ = bytes.size() + (file ? file->bytes().size() : 0);
  return {.ended = state_ == State::kEnded,
          .file = std::move(file),
          .cut = MustCutLocked(),
          .unanswered = abandoned_ && state_ == State::kUnanswered,
          .keep_alive = keep_alive_};
}

void Outbox::Sent(size_t bytes) {
  base::MutexLock lock(mutex_);
  CHECK(bytes <= in_flight_bytes_);
  in_flight_bytes_ -= bytes;
}

std::function<void()> Outbox::Close() {
  base::MutexLock lock(mutex_);
  closed_ = true;
  wake_ = nullptr;
  pending_ = {};
  pending_file_ = nullptr;
  return std::exchange(on_close_, nullptr);
}

}  // namespace plumb::net
