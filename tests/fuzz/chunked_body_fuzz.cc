// tests/fuzz/chunked_body_fuzz.cc
// Arbitrary bytes as a body in the chunked transfer coding. Besides not crashing: every cut gives
// the same body, end and refusal, and a judge that reads the whole input at once, written apart
// from the decoder, agrees.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cuts.h"
#include "net/chunk_decoder.h"

namespace {

using plumb::fuzz::Pieces;
using plumb::net::ChunkDecoder;
using Result = ChunkDecoder::Result;

constexpr uint64_t kBodyBytesMax = 300;
// Below it the decoder has no opinion on how much of an input is padding.
constexpr size_t kJudgedBytesMax = 16u << 10;

struct Reading {
  Result result = Result::kMore;
  std::string body;
  size_t consumed = 0;  // of the input; where it is refused, no more is said
};

Reading Read(const Pieces& pieces) {
  ChunkDecoder decoder(kBodyBytesMax);
  Reading reading;
  for (const std::string_view piece : pieces) {
    size_t consumed = 0;
    reading.result = decoder.Feed(piece, reading.body, consumed);
    CHECK(consumed <= piece.size());
    CHECK(reading.result != Result::kMore || consumed == piece.size());
    CHECK(reading.body.size() <= kBodyBytesMax) << reading.body.size();
    reading.consumed += consumed;
    if (reading.result != Result::kMore) break;
  }
  return reading;
}

// What is before the CR LF at which `input` starts its next line, taken off with it. False: there
// is none yet; `reading` then says whether one may still come.
bool TakeLine(std::string_view& input, std::string_view& line, Reading& reading) {
  const size_t end = input.find_first_of("\r\n");
  line = input.substr(0, end);
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) reading.result = Result::kMalformed;
  }
  if (reading.result == Result::kMalformed || end == input.npos) return false;
  const std::string_view rest = input.substr(end);
  if (!rest.starts_with("\r\n")) {
    if (rest != "\r") reading.result = Result::kMalformed;
    return false;
  }
  input.remove_prefix(end + 2);
  return true;
}

// The size that a chunk's line begins with; what stands behind it must be an extension.
bool ReadSize(std::string_view line, bool whole, uint64_t& size) {
  constexpr size_t kDigitsMax = 15;
  const std::string_view digits = line.substr(0, line.find(';'));
  if (digits.empty()) return !whole && line.empty();
  if (digits.size() > kDigitsMax) return false;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
  return error == std::errc() && end == digits.data() + digits.size() && digits[0] != '-';
}

Reading Judge(const std::string_view whole) {
  std::string_view input = whole;
  Reading reading;
  std::string_view line;
  for (uint64_t announced = 0;;) {
    const bool complete = TakeLine(input, line, reading);
    uint64_t size = 0;
    if (!ReadSize(line, complete, size)) reading.result = Result::kMalformed;
    if (!complete || reading.result != Result::kMore) return reading;
    announced += size;
    if (announced > kBodyBytesMax) reading.result = Result::kTooLarge;
    if (size == 0 || reading.result != Result::kMore) break;
    reading.body += input.substr(0, size);
    if (input.size() <= size) return reading;
    input.remove_prefix(size);
    const bool ended = TakeLine(input, line, reading);
    if (!line.empty()) reading.result = Result::kMalformed;
    if (!ended || reading.result != Result::kMore) return reading;
  }
  while (reading.result == Result::kMore && TakeLine(input, line, reading)) {
    if (line.empty()) reading.result = Result::kDone;
  }
  reading.consumed = whole.size() - input.size();
  return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const Reading whole = Read({input});
  if (size <= kJudgedBytesMax) {
    const Reading judged = Judge(input);
    CHECK(judged.result == whole.result);
    CHECK(judged.body == whole.body) << judged.body;
    CHECK(whole.result != Result::kDone || judged.consumed == whole.consumed) << judged.consumed;
  }
  for (const Pieces& pieces : plumb::fuzz::CutsOf(input)) {
    const Reading cut = Read(pieces);
    CHECK(cut.result == whole.result) << pieces.size() << " pieces";
    CHECK(cut.body == whole.body && cut.consumed == whole.consumed) << pieces.size() << " pieces";
  }
  return 0;
}
