// net/chunk_decoder.cc
// A state per place in the grammar; every line ends in exactly CR LF.
#include "net/chunk_decoder.h"

#include <algorithm>

#include "net/http.h"

namespace plumb::net {

namespace {

// The smallest chunk, "1\r\nx\r\n", has five bytes around one. A client that sends more is wasting
// our time on purpose; the constant lets short bodies have extensions and trailers.
constexpr uint64_t kPaddingFactor = 8;
constexpr uint64_t kPaddingFreeBytes = 16 << 10;
constexpr uint32_t kSizeDigitsMax = 15;  // below 2^60

}  // namespace

ChunkDecoder::Result ChunkDecoder::Feed(std::string_view bytes, std::string& body,
                                        size_t& consumed) {
  for (consumed = 0; consumed < bytes.size();) {
    if (state_ == State::kData) {
      const auto size = std::min<uint64_t>(chunk_bytes_, bytes.size() - consumed);
      body.append(bytes.substr(consumed, size));
      consumed += size;
      chunk_bytes_ -= size;
      if (chunk_bytes_ == 0) state_ = State::kDataEnd;
      continue;
    }
    const char c = bytes[consumed++];
    if (++padding_bytes_ > kPaddingFreeBytes + kPaddingFactor * body_bytes_) {
      return Result::kTooLarge;
    }
    const Result result = TakeLineByte(c);
    if (result != Result::kMore) return result;
  }
  return Result::kMore;
}

// A byte of any line: a chunk's size and extension, the empty rest after its data, a trailer.
ChunkDecoder::Result ChunkDecoder::TakeLineByte(char c) {
  if (after_cr_) {
    after_cr_ = false;
    return c == '\n' ? EndOfLine() : Result::kMalformed;
  }
  if (c == '\r') {
    after_cr_ = true;
    return Result::kMore;
  }
  const auto byte = static_cast<unsigned char>(c);
  if ((byte < 0x20 && c != '\t') || byte == 0x7f) return Result::kMalformed;
  switch (state_) {
    case State::kSize: {
      const int digit = HexDigit(c);
      if (digit >= 0) {
        if (++size_digits_ > kSizeDigitsMax) return Result::kMalformed;
        chunk_bytes_ = chunk_bytes_ * 16 + static_cast<uint64_t>(digit);
        return Result::kMore;
      }
      if (c != ';' || size_digits_ == 0) return Result::kMalformed;
      state_ = State::kExtension;
      return Result::kMore;
    }
    case State::kExtension:
      return Result::kMore;
    case State::kTrailer:
      ++trailer_line_bytes_;
      return Result::kMore;
    case State::kDataEnd:
    case State::kData:
      return Result::kMalformed;
  }
  return Result::kMalformed;
}

ChunkDecoder::Result ChunkDecoder::EndOfLine() {
  switch (state_) {
    case State::kSize:
      if (size_digits_ == 0) return Result::kMalformed;
      [[fallthrough]];
    case State::kExtension:
      if (chunk_bytes_ > body_bytes_max_ - body_bytes_) return Result::kTooLarge;
      body_bytes_ += chunk_bytes_;
      state_ = chunk_bytes_ == 0 ? State::kTrailer : State::kData;
      return Result::kMore;
    case State::kDataEnd:
      state_ = State::kSize;
      chunk_bytes_ = 0;
      size_digits_ = 0;
      return Result::kMore;
    case State::kTrailer:
      if (trailer_line_bytes_ == 0) return Result::kDone;
      trailer_line_bytes_ = 0;
      return Result::kMore;
    case State::kData:
      break;
  }
  return Result::kMalformed;
}

}  // namespace plumb::net
