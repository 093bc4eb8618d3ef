// cli/line_input.cc
// Poll over the input and the signals, behind cli/line_input.h.
#include "cli/line_input.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace plumb::cli {

LineInput::Input LineInput::Next() {
  while (true) {
    const size_t end = pending_.find('\n');
    if (end != std::string::npos || pending_.size() >= kLineBytesMax ||
        (ended_ && !pending_.empty())) {
      const size_t size = std::min({end, pending_.size(), kLineBytesMax});
      Input input{Kind::kLine, pending_.substr(0, size)};
      pending_.erase(0, size == end ? size + 1 : size);
      if (input.line.ends_with('\r')) input.line.pop_back();
      return input;
    }
    if (ended_) return {Kind::kEnd, ""};
    std::array<pollfd, 2> waiting = {pollfd{fd_, POLLIN, 0}, pollfd{signals_.fd(), POLLIN, 0}};
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return {Kind::kEnd, ""};
    if (waiting[1].revents != 0) {
      signals_.Clear();
      pending_.clear();
      return {Kind::kInterrupt, ""};
    }
    if (waiting[0].revents == 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t got = read(fd_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      ended_ = true;
    } else {
      pending_.append(buffer.data(), static_cast<size_t>(got));
    }
  }
}

}  // namespace plumb::cli
