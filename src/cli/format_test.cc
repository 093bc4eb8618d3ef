// cli/format_test.cc
// Numbers for people, at the edges of their units.
#include "cli/format.h"

#include <gtest/gtest.h>

namespace plumb::cli {
namespace {

TEST(FormatBytes, KeepsThreeDigits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "1.00 kB");
  EXPECT_EQ(FormatBytes(98'362'432), "98.4 MB");
  EXPECT_EQ(FormatBytes(999'600), "1.00 MB");
  EXPECT_EQ(FormatBytes(1'117'320'768), "1.12 GB");
  EXPECT_EQ(FormatBytes(UINT64_MAX), "18.4 EB");
}

TEST(FormatCount, KeepsThreeDigits) {
  EXPECT_EQ(FormatCount(7), "7");
  EXPECT_EQ(FormatCount(134'515'008), "135M");
  EXPECT_EQ(FormatCount(1'543'714'304), "1.54B");
}

TEST(FormatDuration, GrowsWithTheTime) {
  EXPECT_EQ(FormatDuration(base::Milliseconds(900)), "0:00");
  EXPECT_EQ(FormatDuration(base::Seconds(67)), "1:07");
  EXPECT_EQ(FormatDuration(base::Seconds(3 * 3600 + 2 * 60 + 11)), "3:02:11");
  EXPECT_EQ(FormatDuration(base::Seconds(400000)), "-:--");
  EXPECT_EQ(FormatDuration({-1}), "-:--");
}

TEST(ParseBytes, TakesUnits) {
  EXPECT_EQ(*ParseBytes("0"), 0u);
  EXPECT_EQ(*ParseBytes("1048576"), 1048576u);
  EXPECT_EQ(*ParseBytes("512K"), 512u << 10);
  EXPECT_EQ(*ParseBytes("512MB"), 512u << 20);
  EXPECT_EQ(*ParseBytes("2g"), 2ull << 30);
  EXPECT_EQ(*ParseBytes("2GiB"), 2ull << 30);
  EXPECT_EQ(*ParseBytes("1T"), 1ull << 40);
  EXPECT_EQ(*ParseBytes("9223372036854775807"), INT64_MAX);
}

TEST(ParseBytes, RefusesTheRest) {
  for (const char* text : {"", "G", "-1", "+1", "1.5G", "1X", "1 G", "1GG", "iB", "1iB",
                           "9223372036854775808", "18446744073709551616", "8388608T", "0x10"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(Wrap, BreaksAtSpacesAndKeepsLineEnds) {
  EXPECT_EQ(Wrap("one two three", 7), "one two\nthree");
  EXPECT_EQ(Wrap("one\ntwo three", 9), "one\ntwo three");
  EXPECT_EQ(Wrap("incomprehensible word", 5), "incomprehensible\nword");
  EXPECT_EQ(Wrap("", 5), "");
}

TEST(Printable, ReplacesControlsAndCutsWholeCharacters) {
  EXPECT_EQ(Printable("a\x1b[31mb\n", 100), "a?[31mb?");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "x",
                      100),
            "?x");
  EXPECT_EQ(Printable("caf\xC3\xA9", 100), "caf\xC3\xA9");
  EXPECT_EQ(Printable("caf\xC3\xA9s", 4), "caf...");
  EXPECT_EQ(Printable("abcdef", 3), "abc...");
}

TEST(Columns, CountsCodePoints) { EXPECT_EQ(Columns("caf\xC3\xA9"), 4u); }

}  // namespace
}  // namespace plumb::cli
