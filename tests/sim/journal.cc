// tests/sim/journal.cc
// The ring of lines, behind tests/sim/journal.h.
#include "journal.h"

namespace plumb::sim {

void Journal::Add(std::string line) {
  // Nothing after the failure: what led to it matters.
  if (failed() && !line.starts_with("FAILED")) return;
  line = fmt::format("{:12.3f} ms  {}", static_cast<double>(clock_.Now().ns) * 1e-6, line);
  if (lines_.size() < kLinesMax) {
    lines_.push_back(std::move(line));
    return;
  }
  lines_[next_] = std::move(line);
  next_ = (next_ + 1) % kLinesMax;
}

std::string Journal::ToString() const {
  std::string out;
  for (size_t i = 0; i < lines_.size(); ++i) {
    out += lines_[(next_ + i) % lines_.size()];
    out += '\n';
  }
  return out;
}

}  // namespace plumb::sim
