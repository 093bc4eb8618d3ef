// cli/line_input.h
// Lines that a person types, or that a file or pipe gives, while signals are watched: Ctrl-C at the
// prompt is an answer of its own.
#pragma once

#include <cstdint>
#include <string>

#include "cli/signals.h"

namespace plumb::cli {

// Thread: main. Borrows the signals.
class LineInput {
 public:
  LineInput(int fd, Signals& signals) : fd_(fd), signals_(signals) {}

  enum class Kind : uint8_t { kLine, kEnd, kInterrupt };
  struct Input {
    Kind kind;
    std::string line;  // without line end; cut at kLineBytesMax
  };
  // Waits. kEnd: the end of the file (Ctrl-D), after a last line without line end; kInterrupt: a
  // signal came; what was typed of the line is dropped, as the terminal itself does.
  Input Next();

  static constexpr size_t kLineBytesMax = 1u << 20;

 private:
  const int fd_;
  Signals& signals_;
  std::string pending_;  // read and not yet given out
  bool ended_ = false;
};

}  // namespace plumb::cli
