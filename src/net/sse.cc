// net/sse.cc
// See sse.h.
#include "net/sse.h"

#include <fmt/format.h>

#include <utility>

namespace plumb::net {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The first line of `text`, taken off it with its CR LF, LF or CR. `last`: nothing follows.
std::string_view TakeFirstLine(std::string_view& text, bool& last) {
  const size_t end = text.find_first_of("\r\n");
  last = end == std::string_view::npos;
  const std::string_view line = text.substr(0, end);
  if (last) {
    text = {};
  } else {
    const bool is_pair = text.substr(end).starts_with("\r\n");
    text.remove_prefix(end + (is_pair ? 2 : 1));
  }
  return line;
}

}  // namespace

void AppendSse(std::string& out, std::string_view event, std::string_view data) {
  if (!event.empty()) {
    out.append("event: ");
    for (char c : event) {
      if (c != '\r' && c != '\n') out.push_back(c);
    }
    out.push_back('\n');
  }
  for (bool last = false; !last;) {
    const std::string_view line = TakeFirstLine(data, last);
    out.append("data: ").append(line).push_back('\n');
  }
  out.push_back('\n');
}

void AppendSseComment(std::string& out, std::string_view text) {
  out.append(": ");
  for (char c : text) out.push_back(c == '\r' || c == '\n' ? ' ' : c);
  out.append("\n\n");
}

base::Status SseParser::Feed(std::string_view bytes, std::vector<SseEvent>& events) {
  for (char c : bytes) {
    const bool is_second_of_pair = c == '\n' && after_cr_;
    after_cr_ = c == '\r';
    if (is_second_of_pair) continue;
    if (c == '\r' || c == '\n') {
      TakeLine(events);
      continue;
    }
    if (line_.size() + event_.data.size() + event_.event.size() >= event_bytes_max_) {
      return base::InvalidArgument(
          "", fmt::format("an event of the stream is larger than {} bytes", event_bytes_max_));
    }
    line_.push_back(c);
  }
  return base::OkStatus();
}

// Fields as the standard's "processing" steps: an empty line dispatches, one space after the colon
// is not part of the value.
void SseParser::TakeLine(std::vector<SseEvent>& events) {
  std::string line = std::exchange(line_, {});
  if (std::exchange(first_line_, false) && line.starts_with(kByteOrderMark)) {
    line.erase(0, kByteOrderMark.size());
  }
  if (line.empty()) {
    if (has_data_) events.push_back(std::move(event_));
    event_ = {};
    has_data_ = false;
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view name = std::string_view(line).substr(0, colon);
  std::string_view value;
  if (colon != std::string::npos) value = std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    if (has_data_) event_.data.push_back('\n');
    event_.data.append(value);
    has_data_ = true;
  } else if (name == "event") {
    event_.event = value;
  }
}

}  // namespace plumb::net
