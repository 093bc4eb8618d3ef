// cli/suggest.cc
// Edit distance by the usual table of prefixes, behind cli/suggest.h.
#include "cli/suggest.h"

#include <algorithm>
#include <array>

namespace plumb::cli {
namespace {
constexpr size_t kLengthMax = 64;
}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  a = a.substr(0, kLengthMax);
  b = b.substr(0, kLengthMax);
  // distance[i][j]: between the first i bytes of a and the first j bytes of b.
  std::array<std::array<size_t, kLengthMax + 1>, kLengthMax + 1> distance;
  for (size_t i = 0; i <= a.size(); ++i) distance[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) distance[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      size_t best = std::min({replace, distance[i - 1][j] + 1, distance[i][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) best = std::min(best, distance[i - 2][j - 2] + 1);
      distance[i][j] = best;
    }
  }
  return distance[a.size()][b.size()];
}

std::string DidYouMean(std::string_view given, std::span<const std::string> known) {
  const std::string* nearest = nullptr;
  size_t nearest_distance = 0;
  for (const std::string& name : known) {
    const size_t distance = EditDistance(given, name);
    const size_t allowed = std::max<size_t>(1, std::max(given.size(), name.size()) / 3);
    if (distance > allowed) continue;
    if (nearest == nullptr || distance < nearest_distance) {
      nearest = &name;
      nearest_distance = distance;
    }
  }
  return nearest == nullptr ? "" : "; did you mean '" + *nearest + "'?";
}

}  // namespace plumb::cli
