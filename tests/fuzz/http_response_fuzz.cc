// tests/fuzz/http_response_fuzz.cc
// Arbitrary bytes as what a server answers to our client, and their body as server-sent events.
// Besides not crashing: every cut gives the same head, body and failure, and the same events, and
// events that are written again are read as they were.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "cuts.h"
#include "net/response_parser.h"
#include "net/sse.h"

namespace {

namespace net = plumb::net;

using plumb::base::Code;
using plumb::base::Status;
using plumb::fuzz::Pieces;

constexpr uint32_t kHeaderBytesMax = 1024;
constexpr uint32_t kEventBytesMax = 512;

struct Reading {
  std::string head;
  std::string body;
  bool done = false;
  std::string failure;
  std::string end;  // what is said when the server closes now
  friend bool operator==(const Reading&, const Reading&) = default;
};

Reading Read(const Pieces& pieces, bool is_head) {
  net::ResponseParser parser(is_head, kHeaderBytesMax);
  Reading reading;
  for (const std::string_view piece : pieces) {
    const Status status = parser.Feed(piece, reading.body);
    if (status.ok()) continue;
    CHECK(status.code() == Code::kCorrupt || status.code() == Code::kInvalidArgument);
    reading.failure = status.ToString();
    break;
  }
  if (parser.has_head()) {
    reading.head = fmt::format("{}\n", parser.head().status);
    for (const auto& [name, value] : parser.head().headers.fields())
      reading.head += fmt::format("{}: {}\n", name, value);
  }
  reading.done = parser.done();
  CHECK(parser.has_head() || reading.body.empty());
  CHECK(!is_head || reading.body.empty());
  if (reading.failure.empty()) reading.end = parser.End().ToString();
  return reading;
}

struct Events {
  std::vector<net::SseEvent> events;
  bool too_large = false;
  friend bool operator==(const Events&, const Events&) = default;
};

Events ReadEvents(const Pieces& pieces) {
  net::SseParser parser(kEventBytesMax);
  Events read;
  for (const std::string_view piece : pieces) {
    const Status status = parser.Feed(piece, read.events);
    if (status.ok()) continue;
    CHECK(status.code() == Code::kInvalidArgument);
    read.too_large = true;
    break;
  }
  for (const net::SseEvent& event : read.events) {
    CHECK(event.data.size() + event.event.size() <= kEventBytesMax);
    CHECK(event.event.find_first_of("\r\n") == event.event.npos);
    CHECK(event.data.find('\r') == event.data.npos);
  }
  return read;
}

void CheckEvents(std::string_view text) {
  const Events whole = ReadEvents({text});
  for (const Pieces& pieces : plumb::fuzz::CutsOf(text))
    CHECK(ReadEvents(pieces) == whole) << pieces.size() << " pieces";
  std::string written;
  for (const net::SseEvent& event : whole.events) {
    net::AppendSseComment(written, event.data);
    net::AppendSse(written, event.event, event.data);
  }
  net::SseParser parser(2 * kEventBytesMax);  // a line is counted with its field's name
  std::vector<net::SseEvent> again;
  CHECK(parser.Feed(written, again).ok());
  CHECK(again == whole.events) << written;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const bool is_head : {false, true}) {
    const Reading whole = Read({input}, is_head);
    for (const Pieces& pieces : plumb::fuzz::CutsOf(input))
      CHECK(Read(pieces, is_head) == whole) << pieces.size() << " pieces";
  }
  CheckEvents(input);
  CheckEvents(Read({input}, false).body);
  return 0;
}
