// text/newline_trim.h
// The newlines at both ends of a text that arrives in pieces: those at its beginning are left out,
// those at its end wait, since whether they stay is known when something follows. What is not
// trimmed passes through. Used by the parsers of answers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace plumb::text {

// A value type.
class NewlineTrim {
 public:
  // `within`: the text has begun already, so its newlines stay.
  explicit NewlineTrim(bool within) : started_(within) {}

  // What is certain of the text so far. With `keep`, newlines at the end are, too.
  std::string Take(std::string_view text, bool keep) {
    const size_t end = text.find_last_not_of('\n') + 1;  // 0: there is nothing else
    std::string piece;
    if (end > 0) {
      const size_t begin = started_ ? 0 : text.find_first_not_of('\n');
      if (started_) piece.assign(newlines_, '\n');
      piece += text.substr(begin, end - begin);
      newlines_ = 0;
      started_ = true;
    }
    newlines_ += text.size() - end;
    if (keep && started_) piece.append(std::exchange(newlines_, 0), '\n');
    return piece;
  }
  // The newlines that wait are left out: something else follows.
  void Drop() { newlines_ = 0; }
  // Another text begins, and its first newlines are left out.
  void Restart() {
    newlines_ = 0;
    started_ = false;
  }
  // The newlines that wait, which end the answer.
  std::string End() { return std::string(started_ ? std::exchange(newlines_, 0) : 0, '\n'); }

 private:
  size_t newlines_ = 0;
  bool started_;
};

}  // namespace plumb::text
