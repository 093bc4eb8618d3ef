// cli/signals.h
// Ctrl-C and SIGTERM as something to wait for. While a Signals object lives the listed signals are
// counted instead of ending the process; before and after, they end it as usual.
#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/clock.h"

namespace plumb::cli {

// Writing to a pipe or terminal that is gone becomes an error of the write instead of the end of
// the process: a server outlives whoever read its log. For the rest of the process.
void IgnoreBrokenPipes();

// A resource type; one at a time in a process (CHECK), since handlers are the process's. Thread:
// the one that made it; signals may arrive on any.
class Signals {
 public:
  explicit Signals(std::initializer_list<int> numbers);
  ~Signals();  // the former handling is back
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // How many have arrived so far.
  uint32_t count() const;
  // Readable when one has arrived since the last Clear; for poll.
  int fd() const;
  void Clear();
  // Waits until one arrives or the time is over; true for a signal. Consumes it (Clear).
  bool WaitFor(base::Duration timeout);
  void Wait();

 private:
  struct Former {
    int number;
    struct sigaction action;
  };
  std::vector<Former> former_;
};

}  // namespace plumb::cli
