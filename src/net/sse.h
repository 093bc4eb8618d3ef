// net/sse.h
// Server-sent events (WHATWG HTML, section "Server-sent events"): writing one, and reading a stream
// of them that arrives split anywhere. Read next: api/sse (what the events say).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace plumb::net {

struct SseEvent {
  std::string event;  // empty = "message"
  std::string data;
  friend bool operator==(const SseEvent&, const SseEvent&) = default;
};

// Appends one event. Line breaks in `data` (LF, CR LF, CR) become further data lines, read back as
// LF; in `event` they are dropped.
void AppendSse(std::string& out, std::string_view event, std::string_view data);
// ": text", ignored by readers; keeps an idle connection alive.
void AppendSseComment(std::string& out, std::string_view text);

// Bytes in, whole events out. Lines may end in LF, CR LF or CR; comments, ids and retry times are
// skipped; an event without data is none. An event cut off by the end of the stream is dropped.
// Thread: one at a time.
class SseParser {
 public:
  explicit SseParser(uint32_t event_bytes_max) : event_bytes_max_(event_bytes_max) {}

  // Appends the events that `bytes` completes. kInvalidArgument: one is larger than
  // event_bytes_max; the parser is then of no further use.
  base::Status Feed(std::string_view bytes, std::vector<SseEvent>& events);

 private:
  void TakeLine(std::vector<SseEvent>& events);

  const uint32_t event_bytes_max_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_line_ = true;
};

}  // namespace plumb::net
