// net/chunk_decoder.h
// Internal to net. The chunked transfer coding (RFC 9112 section 7.1), read strictly and split
// anywhere. Own code because Beast 1.81 aborts when "0\r\n" arrives alone, and to bound padding.
// Extensions and trailers are skipped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace plumb::net {

class ChunkDecoder {
 public:
  enum class Result {
    kMore,  // everything fed was consumed
    kDone,  // the body is complete; what was not consumed is not part of it
    kMalformed,
    kTooLarge,  // more than body_bytes_max, or far more padding than body
  };

  explicit ChunkDecoder(uint64_t body_bytes_max) : body_bytes_max_(body_bytes_max) {}

  // Lowers body_bytes_max; false when more has been announced already.
  bool Limit(uint64_t body_bytes_max) {
    body_bytes_max_ = std::min(body_bytes_max_, body_bytes_max);
    return body_bytes_ <= body_bytes_max_;
  }

  // Reads from `bytes`, appends to `body`; `consumed` bytes were read.
  Result Feed(std::string_view bytes, std::string& body, size_t& consumed);

 private:
  enum class State { kSize, kExtension, kData, kDataEnd, kTrailer };
  Result TakeLineByte(char c);
  Result EndOfLine();

  uint64_t body_bytes_max_;
  State state_ = State::kSize;
  uint64_t chunk_bytes_ = 0;  // of the present chunk, then what is left of it
  uint32_t size_digits_ = 0;
  uint64_t body_bytes_ = 0;     // announced so far
  uint64_t padding_bytes_ = 0;  // everything but data
  bool after_cr_ = false;
  uint64_t trailer_line_bytes_ = 0;
};

}  // namespace plumb::net
