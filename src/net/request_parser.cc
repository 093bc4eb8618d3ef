// net/request_parser.cc
// Three passes over a header: ScanHeader finds its end byte by byte and refuses what no honest
// client sends; Beast parses the block; CheckFraming and CheckTarget judge the result.
#include "net/request_parser.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "net/beast.h"

namespace plumb::net {

namespace {

constexpr uint64_t kBodyGrowth = 4;
constexpr size_t kMethodBytesMax = 24;  // longer than every registered method

std::string ToString(boost::beast::string_view text) { return {text.data(), text.size()}; }

bool IsSpaceOrTab(char c) { return c == ' ' || c == '\t'; }

// Of a request line that ends as one should, but for another version.
bool IsOtherVersion(std::string_view line) {
  constexpr size_t kVersionBytes = 8;  // "HTTP/2.0"
  if (line.size() < kVersionBytes) return false;
  const std::string_view version = line.substr(line.size() - kVersionBytes);
  return version.starts_with("HTTP/") && version != "HTTP/1.1" && version != "HTTP/1.0";
}

std::optional<uint64_t> ParseLength(std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return length;
}

}  // namespace

RequestParser::RequestParser(const HttpLimits& limits) : limits_(limits) {}

RequestParser::Phase RequestParser::Advance() {
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kHeader:
      return ScanHeader();
    case Phase::kBody:
      return ParseBody();
    case Phase::kDone:
    case Phase::kRefused:
      return phase_;
  }
  return phase_;
}

void RequestParser::Next() {
  CHECK(phase_ == Phase::kDone);
  phase_ = Phase::kIdle;
  scanned_ = 0;
  line_bytes_ = 0;
  empty_line_forgiven_ = false;
  body_bytes_left_ = 0;
  chunks_.reset();
  request_ = {};
  expects_continue_ = keep_alive_ = is_http10_ = false;
  if (buffer_.empty()) buffer_.shrink_to_fit();
}

void RequestParser::Discard() {
  buffer_ = {};
  request_ = {};
}

RequestParser::Phase RequestParser::LimitBody(uint64_t bytes_max) {
  CHECK(phase_ == Phase::kBody);
  const bool fits =
      chunks_ ? chunks_->Limit(bytes_max) : request_.body.size() + body_bytes_left_ <= bytes_max;
  return fits ? phase_ : Refuse(413, "The body is too large.");
}

HttpRequest RequestParser::TakeRequest() {
  CHECK(phase_ == Phase::kDone);
  return std::move(request_);
}

RequestParser::Phase RequestParser::Refuse(int status, std::string_view message) {
  refusal_ = {status, message};
  return phase_ = Phase::kRefused;
}

// Every CR must belong to a CRLF, no line may continue the one before (obs-fold), and no control
// byte may occur: different readers cut lines differently at those.
RequestParser::Phase RequestParser::ScanHeader() {
  // RFC 9112 2.2: an empty line before the request line is forgiven (old clients send one).
  if (!empty_line_forgiven_ && scanned_ == 0) {
    if (buffer_ == "\r") return phase_ = Phase::kIdle;
    if (buffer_.starts_with("\r\n")) {
      buffer_.erase(0, 2);
      empty_line_forgiven_ = true;
    }
  }
  if (buffer_.empty()) return phase_ = Phase::kIdle;
  phase_ = Phase::kHeader;
  for (; scanned_ < buffer_.size(); ++scanned_) {
    if (line_bytes_ == 0 && scanned_ > kMethodBytesMax + limits_.target_bytes_max) {
      return Refuse(414, "The request target is too long.");
    }
    if (scanned_ >= limits_.header_bytes_max) return Refuse(431, "The header is too large.");
    const char c = buffer_[scanned_];
    const bool after_cr = scanned_ > 0 && buffer_[scanned_ - 1] == '\r';
    if (after_cr != (c == '\n')) return Refuse(400, "A header line must end with CR LF.");
    if (c == '\n') {
      if (scanned_ == 1) return Refuse(400, "The request line is missing.");
      if (line_bytes_ == 0) line_bytes_ = scanned_ - 1;
      if (buffer_[scanned_ - 2] == '\n') return ParseHeader(scanned_ + 1);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t' && c != '\r') || byte == 0x7f) {
      return Refuse(400, "The header contains a control byte.");
    }
    if (IsSpaceOrTab(c) && scanned_ > 0 && buffer_[scanned_ - 1] == '\n') {
      return Refuse(400, "A header line must not continue the one before it.");
    }
  }
  return phase_;
}

RequestParser::Phase RequestParser::ParseHeader(size_t header_bytes) {
  http::request_parser<http::empty_body> parser;
  parser.eager(true);
  parser.skip(true);  // the body is ours
  parser.header_limit(limits_.header_bytes_max);
  ErrorCode error;
  const size_t used = parser.put(asio::buffer(buffer_.data(), header_bytes), error);
  if (error && IsOtherVersion(std::string_view(buffer_).substr(0, line_bytes_))) {
    return Refuse(505, "Only HTTP/1.0 and 1.1 are spoken.");
  }
  if (error) return Refuse(400, "The header is malformed.");
  CHECK(used == header_bytes && parser.is_header_done());
  buffer_.erase(0, header_bytes);

  const auto& message = parser.get();
  for (const auto& field : message) {
    if (request_.headers.fields().size() >= limits_.header_fields_max) {
      return Refuse(431, "The header has too many fields.");
    }
    request_.headers.Add(ToString(field.name_string()), ToString(field.value()));
  }
  is_http10_ = message.version() == 10;
  keep_alive_ = !is_http10_ && message.keep_alive();
  const auto method = MethodFromName(ToString(message.method_string()));
  if (!method) return Refuse(501, "The method is not supported.");
  request_.method = *method;
  if (CheckTarget(ToString(message.target())) == Phase::kRefused) return phase_;
  return CheckFraming();
}

// One length, said once, in plain digits or as exactly "chunked": a proxy before us cannot
// disagree.
RequestParser::Phase RequestParser::CheckFraming() {
  const HttpHeaders& headers = request_.headers;
  uint64_t body_bytes_max = limits_.body_bytes_max;
  body_time_max_ = limits_.body_time_max;
  for (const BodyLimit& limit : limits_.body_limits) {
    if (limit.path != request_.path) continue;
    body_bytes_max = limit.bytes_max;
    body_time_max_ = limit.time_max;
  }
  const size_t lengths = headers.Count("Content-Length");
  const size_t encodings = headers.Count("Transfer-Encoding");
  if (lengths + encodings > 1) return Refuse(400, "The body's length is given more than once.");
  if (lengths == 1) {
    const auto length = ParseLength(*headers.Get("Content-Length"));
    if (!length) return Refuse(400, "Content-Length must be a number.");
    if (*length > body_bytes_max) return Refuse(413, "The body is too large.");
    body_bytes_left_ = *length;
  }
  if (encodings == 1) {
    if (is_http10_) return Refuse(400, "HTTP/1.0 has no Transfer-Encoding.");
    if (!EqualsIgnoreCase(*headers.Get("Transfer-Encoding"), "chunked")) {
      return Refuse(501, "The only supported Transfer-Encoding is chunked.");
    }
    chunks_.emplace(body_bytes_max);
  }
  const size_t hosts = headers.Count("Host");
  if (hosts > 1 || (hosts == 0 && !is_http10_)) {
    return Refuse(400, "The header must have exactly one Host field.");
  }
  if (const auto expect = headers.Get("Expect"); expect && !is_http10_) {
    if (!EqualsIgnoreCase(*expect, "100-continue")) {
      return Refuse(417, "The only supported expectation is 100-continue.");
    }
    expects_continue_ = chunks_ || body_bytes_left_ > 0;
  }
  phase_ = Phase::kBody;
  return ParseBody();
}

RequestParser::Phase RequestParser::CheckTarget(std::string_view target) {
  if (target.size() > limits_.target_bytes_max) {
    return Refuse(414, "The request target is too long.");
  }
  // Absolute form (RFC 9112 3.2.2): the authority is not ours to judge, Host is not used either.
  for (std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size()) continue;
    if (!EqualsIgnoreCase(target.substr(0, scheme.size()), scheme)) continue;
    const size_t slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
    break;
  }
  const bool is_asterisk = target == "*" && request_.method == HttpMethod::kOptions;
  if (!target.starts_with('/') && !is_asterisk) {
    return Refuse(400, "The request target must start with a slash.");
  }
  const size_t question = target.find('?');
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
  auto path = PercentDecode(target.substr(0, question));
  const auto is_bad = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '#';
  };
  if (!path || std::any_of(path->begin(), path->end(), is_bad)) {
    return Refuse(400, "The request target is malformed.");
  }
  request_.path = *std::move(path);
  return phase_;
}

RequestParser::Phase RequestParser::ParseBody() {
  if (!chunks_) {
    const auto size = std::min<uint64_t>(body_bytes_left_, buffer_.size());
    // A large body is copied once as it grows, not at each doubling; and still no sender makes us
    // set aside more than a few times what has come.
    if (const uint64_t needed = request_.body.size() + size; needed > request_.body.capacity()) {
      request_.body.reserve(
          std::min(request_.body.size() + body_bytes_left_, kBodyGrowth * needed));
    }
    request_.body.append(buffer_, 0, size);
    buffer_.erase(0, size);
    body_bytes_left_ -= size;
    return phase_ = body_bytes_left_ == 0 ? Phase::kDone : Phase::kBody;
  }
  size_t consumed = 0;
  const ChunkDecoder::Result result = chunks_->Feed(buffer_, request_.body, consumed);
  buffer_.erase(0, consumed);
  switch (result) {
    case ChunkDecoder::Result::kMore:
      return phase_;
    case ChunkDecoder::Result::kDone:
      return phase_ = Phase::kDone;
    case ChunkDecoder::Result::kTooLarge:
      return Refuse(413, "The body is too large.");
    case ChunkDecoder::Result::kMalformed:
      break;
  }
  return Refuse(400, "The chunked body is malformed.");
}

}  // namespace plumb::net
