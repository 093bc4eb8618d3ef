// cli/suggest.h
// "Did you mean": the known name nearest to one that was mistyped.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace plumb::cli {

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other
// (restricted Damerau-Levenshtein). Both are cut at 64 bytes.
size_t EditDistance(std::string_view a, std::string_view b);

// "; did you mean 'port'?" for the nearest of `known` when it is near enough to be meant (distance
// at most a third of the longer, at least 1), else "". The earlier entry wins a tie.
std::string DidYouMean(std::string_view given, std::span<const std::string> known);

}  // namespace plumb::cli
