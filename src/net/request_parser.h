// net/request_parser.h
// Internal to net. Bytes in, whole requests out, without I/O: feed it split anywhere. Beast parses
// headers; around it stands what Beast lets pass and a proxy might read differently (request
// smuggling: RFC 9112 section 11.2), so that there is exactly one reading of every request. Thread:
// one at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/chunk_decoder.h"
#include "net/http_server.h"

namespace plumb::net {

class RequestParser {
 public:
  enum class Phase {
    kIdle,     // nothing of a request has come
    kHeader,   // a part of the header has come
    kBody,     // the header is complete and accepted, the body is not
    kDone,     // TakeRequest
    kRefused,  // refusal; nothing after it can be understood
  };

  // `limits` is borrowed for the parser's life.
  explicit RequestParser(const HttpLimits& limits);

  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // Reads as far as the appended bytes allow. In kDone it stays there until Next.
  Phase Advance();
  // Forgets the finished request; what was sent behind it is the next one.
  void Next();

  // Frees what is held of a request that will not be finished; nothing may follow.
  void Discard();

  // Bytes appended and not yet consumed.
  size_t buffered_bytes() const { return buffer_.size(); }
  // Of the body, so far.
  size_t body_bytes() const { return request_.body.size(); }
  // Likewise, and what Content-Length says is still to come.
  uint64_t body_bytes_announced() const { return request_.body.size() + body_bytes_left_; }

  // Valid in kRefused.
  const HttpRefusal& refusal() const { return refusal_; }
  // Valid in kBody: everything but the body, of which there may be a part. In other phases a
  // request that asks for nothing.
  const HttpRequest& head() const { return request_; }
  // In kBody: refuses this body when it is, or becomes, larger.
  Phase LimitBody(uint64_t bytes_max);
  // Valid from kBody on.
  bool expects_continue() const { return expects_continue_; }  // Expect: 100-continue, and a body
  base::Duration body_time_max() const { return body_time_max_; }
  bool keep_alive() const { return keep_alive_; }
  bool is_http10() const { return is_http10_; }
  // Valid in kDone, once; `peer` is left to the caller.
  HttpRequest TakeRequest();

 private:
  Phase Refuse(int status, std::string_view message);
  Phase ScanHeader();
  Phase ParseHeader(size_t header_bytes);
  Phase CheckFraming();
  Phase CheckTarget(std::string_view target);
  Phase ParseBody();

  const HttpLimits& limits_;
  std::string buffer_;
  Phase phase_ = Phase::kIdle;
  size_t scanned_ = 0;     // bytes of buffer_ already checked by ScanHeader
  size_t line_bytes_ = 0;  // length of the request line, 0 = its end has not come
  bool empty_line_forgiven_ = false;
  uint64_t body_bytes_left_ = 0;        // with Content-Length
  std::optional<ChunkDecoder> chunks_;  // with Transfer-Encoding
  HttpRequest request_;
  HttpRefusal refusal_{};
  base::Duration body_time_max_;
  bool expects_continue_ = false;
  bool keep_alive_ = false;
  bool is_http10_ = false;
};

}  // namespace plumb::net
