// net/response_parser.cc
// See response_parser.h. Beast parses the complete header block, nothing else.
#include "net/response_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/result.h"
#include "net/beast.h"

namespace plumb::net {

using base::Status;

namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string ToString(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Status ResponseParser::Feed(std::string_view bytes, std::string& body) {
  if (state_ == State::kDone) return base::OkStatus();
  const size_t searched = buffer_.size() < kHeadEnd.size() ? 0 : buffer_.size() - kHeadEnd.size();
  buffer_.append(bytes);
  // More than one head when 1xx responses come first.
  for (size_t from = searched; state_ == State::kHead; from = 0) {
    const size_t end = buffer_.find(kHeadEnd, from);
    if (std::min(end, buffer_.size()) > header_bytes_max_) {
      return base::InvalidArgument(
          "", fmt::format("the response's header is larger than {} bytes", header_bytes_max_));
    }
    if (end == std::string::npos) return base::OkStatus();
    RETURN_IF_ERROR(ParseHead(end + kHeadEnd.size()));
  }
  return FeedBody(body);
}

Status ResponseParser::ParseHead(size_t head_bytes) {
  http::response_parser<http::empty_body> parser;
  parser.eager(true);
  parser.skip(true);
  parser.header_limit(header_bytes_max_ + kHeadEnd.size());
  ErrorCode error;
  parser.put(asio::buffer(buffer_.data(), head_bytes), error);
  if (error || !parser.is_header_done()) {
    return base::Corrupt("the other side does not answer in HTTP/1.1");
  }
  buffer_.erase(0, head_bytes);
  const auto& message = parser.get();
  head_ = {};
  head_.status = static_cast<int>(message.result_int());
  if (head_.status / 100 == 1) return base::OkStatus();
  for (const auto& field : message) {
    head_.headers.Add(ToString(field.name_string()), ToString(field.value()));
  }
  if (is_head_ || head_.status == 204 || head_.status == 304) {
    state_ = State::kDone;
  } else if (parser.chunked()) {
    state_ = State::kChunks;
    chunks_.emplace(UINT64_MAX);
  } else if (const auto length = parser.content_length()) {
    state_ = State::kLength;
    bytes_left_ = *length;
  } else {
    state_ = State::kUntilEnd;
  }
  return base::OkStatus();
}

Status ResponseParser::FeedBody(std::string& body) {
  size_t consumed = buffer_.size();
  switch (state_) {
    case State::kLength:
      consumed = std::min<uint64_t>(bytes_left_, buffer_.size());
      body.append(buffer_, 0, consumed);
      bytes_left_ -= consumed;
      if (bytes_left_ == 0) state_ = State::kDone;
      break;
    case State::kUntilEnd:
      body.append(buffer_);
      break;
    case State::kChunks:
      switch (chunks_->Feed(buffer_, body, consumed)) {
        case ChunkDecoder::Result::kMore:
          break;
        case ChunkDecoder::Result::kDone:
          state_ = State::kDone;
          break;
        case ChunkDecoder::Result::kMalformed:
        case ChunkDecoder::Result::kTooLarge:
          return base::Corrupt("the response's chunked body is malformed");
      }
      break;
    case State::kHead:
    case State::kDone:
      break;
  }
  buffer_.erase(0, consumed);
  return base::OkStatus();
}

Status ResponseParser::End() {
  if (state_ == State::kUntilEnd) state_ = State::kDone;
  if (state_ == State::kDone) return base::OkStatus();
  return Status(base::Code::kUnavailable, "the other side closed before its answer was complete");
}

}  // namespace plumb::net
