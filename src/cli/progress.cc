// cli/progress.cc
// Layout and pace of progress lines, behind cli/progress.h.
#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/format.h"

namespace plumb::cli {
namespace {

constexpr base::Duration kTerminalPace = base::Milliseconds(100);
constexpr base::Duration kLinePace = base::Seconds(5);
constexpr base::Duration kRateAfter = base::Milliseconds(200);  // earlier rates are noise
constexpr size_t kBarColumns = 24;

std::string Bar(double share) {
  const auto full = static_cast<size_t>(share * kBarColumns);
  std::string bar = "[" + std::string(full, '=');
  if (full < kBarColumns) bar += '>' + std::string(kBarColumns - full - 1, ' ');
  return bar + "]";
}

std::string Amount(uint64_t amount, ProgressUnit unit) {
  return unit == ProgressUnit::kBytes ? FormatBytes(amount) : fmt::format("{}", amount);
}

// "12.3 MB/s, 0:07 left"; empty while there is nothing to measure.
std::string Rate(const ProgressState& state) {
  const uint64_t moved = state.done - std::min(state.done, state.done_at_start);
  if (moved == 0 || state.elapsed < kRateAfter) return "";
  const double rate = static_cast<double>(moved) / state.elapsed.seconds();
  std::string text = state.unit == ProgressUnit::kBytes
                         ? FormatBytes(static_cast<uint64_t>(rate)) + "/s"
                         : fmt::format("{:.{}f}/s", rate, rate < 10 ? 1 : 0);
  if (state.total > state.done) {
    const double left = static_cast<double>(state.total - state.done) / rate;
    const bool sane = left < 100.0 * 3600.0;
    text += ", " + FormatDuration(sane ? base::Seconds(left) : base::Duration{-1}) + " left";
  }
  return text;
}

}  // namespace

std::string FormatProgress(const ProgressState& state, size_t width) {
  std::string amounts = Amount(state.done, state.unit);
  std::string share;
  std::string bar;
  if (state.total > 0) {
    const double part =
        std::min(1.0, static_cast<double>(state.done) / static_cast<double>(state.total));
    share = fmt::format("{:3.0f}%", part * 100.0);
    bar = Bar(part);
    amounts += " of " + Amount(state.total, state.unit);
  }
  std::string rate = Rate(state);
  const auto join = [&] {
    std::string line = state.label;
    for (const std::string_view part :
         {std::string_view(bar), std::string_view(share), std::string_view(amounts),
          std::string_view(rate), std::string_view(state.note)}) {
      if (part.empty()) continue;
      if (!line.empty()) line += "  ";
      line += part;
    }
    return line;
  };
  for (std::string* part : {&bar, &amounts, &rate, &share}) {
    std::string line = join();
    if (Columns(line) <= width) return line;
    part->clear();
  }
  std::string line = join();
  if (Columns(line) > width) line = Printable(line, width > 3 ? width - 3 : 0);
  return line;
}

ProgressOutput ErrorTerminal() {
  ProgressOutput output;
  output.is_terminal = isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (output.is_terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) {
    output.width = size.ws_col - 1u;
  }
  output.write = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); };
  return output;
}

ProgressOutput NoProgress() {
  return {[](std::string_view) {}, false, 80};
}

Progress::Progress(const base::Clock& clock, ProgressOutput output, std::string label,
                   ProgressUnit unit)
    : clock_(clock), output_(std::move(output)) {
  state_.label = std::move(label);
  state_.unit = unit;
}

void Progress::Start(std::string label, uint64_t done_at_start, uint64_t total) {
  Finish();
  state_.label = std::move(label);
  state_.done = state_.done_at_start = done_at_start;
  state_.total = total;
  state_.note.clear();
  started_ = drawn_ = clock_.Now();
  active_ = true;
  if (output_.is_terminal) Draw();
}

void Progress::Update(uint64_t done, std::string note) {
  if (!active_) return;
  state_.done = std::max(state_.done, done);
  state_.note = std::move(note);
  const base::Duration pace = output_.is_terminal ? kTerminalPace : kLinePace;
  if (clock_.Now() - drawn_ >= pace) Draw();
}

void Progress::Finish() {
  if (!active_) return;
  Draw();
  if (output_.is_terminal) output_.write("\n");
  active_ = false;
}

void Progress::Draw() {
  drawn_ = clock_.Now();
  state_.elapsed = drawn_ - started_;
  const std::string line = FormatProgress(state_, output_.width);
  output_.write(output_.is_terminal ? "\r" + line + "\033[K" : line + "\n");
}

}  // namespace plumb::cli
