// tests/sim/journal.h
// What happened last, with its time, and the first thing that was wrong. Kept in memory, a bounded
// number of lines; shown only when a run fails.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "world.h"

namespace plumb::sim {

// Thread: one.
class Journal {
 public:
  // `clock` must outlive the journal.
  explicit Journal(const SimClock& clock) : clock_(clock) {}

  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) {
    Add(fmt::format(format, std::forward<Args>(args)...));
  }
  // Something that must never be. The first one is kept, with the lines before it.
  template <typename... Args>
  void Fail(fmt::format_string<Args...> format, Args&&... args) {
    if (failed()) return;
    failure_ = fmt::format(format, std::forward<Args>(args)...);
    Add("FAILED: " + failure_);
  }

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  // The last lines, oldest first.
  std::string ToString() const;

 private:
  void Add(std::string line);

  static constexpr size_t kLinesMax = 60;
  const SimClock& clock_;
  std::vector<std::string> lines_;  // a ring once full
  size_t next_ = 0;
  std::string failure_;
};

}  // namespace plumb::sim
