// text/stop_matcher.cc: what is held is shorter than the longest stop, so looking for it again from
// its start costs little; no automaton is needed for the few short stops that a request may bring.
#include "text/stop_matcher.h"

#include <algorithm>

namespace plumb::text {
namespace {

struct Match {
  size_t begin = std::string::npos;
  size_t end = std::string::npos;
  size_t index = 0;
};

Match FindFirstComplete(std::string_view text, const std::vector<std::string>& stops) {
  Match best;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) continue;
    const size_t begin = text.find(stops[i]);
    if (begin == std::string_view::npos) continue;
    const size_t end = begin + stops[i].size();
    if (end < best.end || (end == best.end && begin < best.begin)) best = {begin, end, i};
  }
  return best;
}

// The start of the longest suffix of `text` that is a proper prefix of some stop.
size_t HeldFrom(std::string_view text, const std::vector<std::string>& stops) {
  size_t held = 0;
  for (const std::string& stop : stops) {
    if (stop.empty()) continue;
    for (size_t size = std::min(stop.size() - 1, text.size()); size > held; --size) {
      if (text.ends_with(std::string_view(stop).substr(0, size))) held = size;
    }
  }
  return text.size() - held;
}

}  // namespace

StopMatcher::Output StopMatcher::Push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  const Match match = FindFirstComplete(held_, stops_);
  Output output;
  if (match.end != std::string::npos) {
    stopped_ = true;
    output.text = held_.substr(0, match.begin);
    output.stop_index = match.index;
    held_.clear();
    return output;
  }
  const size_t keep = HeldFrom(held_, stops_);
  output.text = held_.substr(0, keep);
  held_.erase(0, keep);
  return output;
}

std::string StopMatcher::Finish() {
  std::string rest = stopped_ ? std::string() : std::move(held_);
  held_.clear();
  return rest;
}

}  // namespace plumb::text
