// text/stop_matcher_test.cc: tables of small cases, and the property that cutting a text into
// pieces changes nothing, against a scan of the whole.
#include "text/stop_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace plumb::text {
namespace {

struct Outcome {
  std::string text;
  std::optional<size_t> stop;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << testing::PrintToString(outcome.text) << " stop "
             << testing::PrintToString(outcome.stop);
}

Outcome Match(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  Outcome outcome;
  for (const std::string& piece : pieces) {
    StopMatcher::Output output = matcher.Push(piece);
    outcome.text += output.text;
    if (output.stop_index) {
      EXPECT_FALSE(outcome.stop.has_value()) << "a second stop";
      outcome.stop = output.stop_index;
    }
  }
  outcome.text += matcher.Finish();
  return outcome;
}

// The rule written as a scan of the whole text, byte by byte.
Outcome Expected(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (stops[i].empty() || !text.substr(0, end).ends_with(stops[i])) continue;
      if (!best || stops[i].size() > stops[*best].size()) best = i;
    }
    if (best) return {text.substr(0, end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

TEST(StopMatcher, FindsAStopAndReleasesNothingAfterIt) {
  EXPECT_EQ(Match({"END"}, {"one END two", "three"}), (Outcome{"one ", 0}));
  EXPECT_EQ(Match({"END"}, {"one E", "N", "D two"}), (Outcome{"one ", 0}));
  EXPECT_EQ(Match({"\n\n", "END"}, {"a\n", "\nEND"}), (Outcome{"a", 0}));
  EXPECT_EQ(Match({"끝"}, {"가\xEB\x81", "\x9D나"}), (Outcome{"가", 0}));
}

TEST(StopMatcher, ReleasesEverythingWhenNoStopComes) {
  EXPECT_EQ(Match({}, {"a", "b"}), (Outcome{"ab", std::nullopt}));
  EXPECT_EQ(Match({""}, {"a", "b"}), (Outcome{"ab", std::nullopt}));
  EXPECT_EQ(Match({"END"}, {"the EN", "TRY"}), (Outcome{"the ENTRY", std::nullopt}));
  EXPECT_EQ(Match({"END"}, {"the EN"}), (Outcome{"the EN", std::nullopt}));
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStop) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.Push("the E").text, "the ");
  EXPECT_EQ(matcher.Push("E").text, "E");
  EXPECT_EQ(matcher.Push("x").text, "Ex");
  EXPECT_EQ(matcher.Push("plain").text, "plain");
}

TEST(StopMatcher, TheFirstCompleteStopWins) {
  EXPECT_EQ(Match({"abcd", "bc"}, {"abcd"}), (Outcome{"a", 1}));
  EXPECT_EQ(Match({"bc", "abc"}, {"xabc"}), (Outcome{"x", 1}));
  EXPECT_EQ(Match({"abc", "ab"}, {"abc"}), (Outcome{"", 1}));
  EXPECT_EQ(Match({"ab", "ab"}, {"ab"}), (Outcome{"", 0}));
}

TEST(StopMatcher, EveryCuttingOfATextGivesTheSame) {
  const uint64_t seed = 20261129;
  SCOPED_TRACE(seed);
  base::Rng rng(seed);
  for (int round = 0; round < 20000; ++round) {
    const auto word = [&](uint64_t size_max) {
      std::string text;
      for (uint64_t n = rng.Below(size_max + 1); n > 0; --n) text += "abc"[rng.Below(3)];
      return text;
    };
    std::vector<std::string> stops;
    for (uint64_t n = rng.Below(4); n > 0; --n) stops.push_back(word(5));
    const std::string text = word(24);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + rng.Below(6);
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    ASSERT_EQ(Match(stops, pieces), Expected(stops, text))
        << testing::PrintToString(stops) << " in " << testing::PrintToString(pieces);
  }
}

}  // namespace
}  // namespace plumb::text
