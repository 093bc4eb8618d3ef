// text/stop_matcher.h
// Finds the first stop string in a text that arrives in pieces. Holds back only a suffix that is a
// proper prefix of some stop string, so that no part of a stop leaks and nothing else waits.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::text {

// One per generated sequence; a value type. Thread: one at a time.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  struct Output {
    std::string text;                  // released; never contains a stop string
    std::optional<size_t> stop_index;  // which stop was met; nothing after it is released
  };
  // The stop that is complete first wins; of those complete at once, the one that begins first,
  // then the earlier entry. (Waiting for a longer stop that begins earlier would cost tokens that
  // the caller asked not to have.) After a match, further pushes release nothing. Empty stops are
  // ignored.
  Output Push(std::string_view text);
  // The end without a stop: what was held back.
  std::string Finish();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace plumb::text
