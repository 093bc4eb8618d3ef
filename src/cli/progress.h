// cli/progress.h
// Progress for people waiting: a bar that redraws itself on a terminal, a line every few seconds
// elsewhere. It reads time from a Clock and writes through a function, so that tests own both.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace plumb::cli {

enum class ProgressUnit : uint8_t { kBytes, kItems };

struct ProgressState {
  std::string label;  // "smollm2-135m"
  ProgressUnit unit = ProgressUnit::kBytes;
  uint64_t done = 0;
  uint64_t total = 0;          // 0 = not known
  uint64_t done_at_start = 0;  // from an earlier run: not part of the rate
  base::Duration elapsed;      // since the start of this run
  std::string note;            // "812 tokens/s"; may be empty
};

// One line of at most `width` columns: label, bar, share, amounts, rate, time left, note. Parts
// that do not fit are left out, the bar first.
std::string FormatProgress(const ProgressState& state, size_t width);

// Where progress goes. Standard error of this process: ErrorTerminal().
struct ProgressOutput {
  std::function<void(std::string_view)> write;
  bool is_terminal = false;
  size_t width = 80;
};
ProgressOutput ErrorTerminal();
ProgressOutput NoProgress();

// Thread: one at a time.
class Progress {
 public:
  Progress(const base::Clock& clock, ProgressOutput output, std::string label, ProgressUnit unit);

  // A new phase: `done_at_start` of `total` is there already.
  void Start(std::string label, uint64_t done_at_start, uint64_t total);
  // Draws when the last drawing is old enough. `done` never falls within a phase.
  void Update(uint64_t done, std::string note = "");
  // Draws the last state and ends the line; without a Start it prints nothing.
  void Finish();

 private:
  void Draw();

  const base::Clock& clock_;
  ProgressOutput output_;
  ProgressState state_;
  base::Instant started_{};
  base::Instant drawn_{};
  bool active_ = false;
};

}  // namespace plumb::cli
