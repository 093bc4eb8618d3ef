// net/response_parser.h
// Internal to net. Bytes in, one response out, for the client: the head first, then the body in
// pieces. The counterpart of request_parser.h; the same decoder reads its chunks.
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/chunk_decoder.h"
#include "net/http.h"

namespace plumb::net {

class ResponseParser {
 public:
  // `is_head`: the request was HEAD, so no body follows.
  ResponseParser(bool is_head, uint32_t header_bytes_max)
      : is_head_(is_head), header_bytes_max_(header_bytes_max) {}

  // Reads `bytes`, appends what they hold of the body. kCorrupt: not HTTP. kInvalidArgument: the
  // header is too large.
  base::Status Feed(std::string_view bytes, std::string& body);
  // The peer closed. kUnavailable: the response is not complete.
  base::Status End();

  bool has_head() const { return state_ != State::kHead; }
  bool done() const { return state_ == State::kDone; }
  const HttpResponse& head() const { return head_; }  // its body stays empty

 private:
  enum class State { kHead, kLength, kChunks, kUntilEnd, kDone };
  base::Status ParseHead(size_t head_bytes);
  base::Status FeedBody(std::string& body);

  const bool is_head_;
  const uint32_t header_bytes_max_;
  State state_ = State::kHead;
  std::string buffer_;
  HttpResponse head_;
  uint64_t bytes_left_ = 0;
  std::optional<ChunkDecoder> chunks_;
};

}  // namespace plumb::net
