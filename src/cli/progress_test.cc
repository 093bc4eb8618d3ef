// cli/progress_test.cc: what a line says, what is left out when it is narrow, and how often it
// comes.
#include "cli/progress.h"

#include <gtest/gtest.h>

#include "cli/format.h"

namespace plumb::cli {
namespace {

ProgressState Half() {
  return {.label = "pull",
          .unit = ProgressUnit::kBytes,
          .done = 50'000'000,
          .total = 100'000'000,
          .done_at_start = 30'000'000,
          .elapsed = base::Seconds(2),
          .note = ""};
}

TEST(FormatProgress, ShowsShareAmountsRateAndTimeLeft) {
  EXPECT_EQ(FormatProgress(Half(), 120),
            "pull  [============>           ]   50%  50.0 MB of 100 MB  10.0 MB/s, 0:05 left");
}

TEST(FormatProgress, CountsItemsAndShowsTheNote) {
  const ProgressState state = {.label = "generate",
                               .unit = ProgressUnit::kItems,
                               .done = 30,
                               .total = 30,
                               .done_at_start = 0,
                               .elapsed = base::Seconds(10),
                               .note = "812 tokens/s"};
  EXPECT_EQ(FormatProgress(state, 120),
            "generate  [========================]  100%  30 of 30  3.0/s  812 tokens/s");
}

TEST(FormatProgress, SaysNoRateBeforeThereIsOne) {
  ProgressState state = Half();
  state.done = state.done_at_start;
  EXPECT_EQ(FormatProgress(state, 120).find("left"), std::string::npos);
}

TEST(FormatProgress, WithoutATotalShowsTheAmount) {
  ProgressState state = Half();
  state.total = 0;
  EXPECT_EQ(FormatProgress(state, 120), "pull  50.0 MB  10.0 MB/s");
}

TEST(FormatProgress, NeverExceedsTheWidth) {
  for (size_t width = 0; width < 120; ++width) {
    EXPECT_LE(Columns(FormatProgress(Half(), width)), std::max<size_t>(width, 3)) << width;
  }
  EXPECT_EQ(FormatProgress(Half(), 60).find('['), std::string::npos) << "the bar goes first";
}

TEST(FormatProgress, MoreThanTheTotalIsShownAsAll) {
  ProgressState state = Half();
  state.done = 150'000'000;
  EXPECT_NE(FormatProgress(state, 120).find("100%"), std::string::npos);
}

class ProgressPace : public testing::Test {
 protected:
  ProgressOutput Output(bool is_terminal) {
    return {[this](std::string_view text) { lines_.emplace_back(text); }, is_terminal, 100};
  }
  base::ManualClock clock_;
  std::vector<std::string> lines_;
};

TEST_F(ProgressPace, RedrawsOnATerminalTenTimesASecond) {
  Progress progress(clock_, Output(true), "x", ProgressUnit::kItems);
  progress.Start("x", 0, 1000);
  for (int i = 0; i < 1000; ++i) {
    clock_.Advance(base::Milliseconds(1));
    progress.Update(static_cast<uint64_t>(i));
  }
  progress.Finish();
  EXPECT_EQ(lines_.size(), 1u + 10u + 2u);  // the first, ten redrawn, the last and its line end
  EXPECT_EQ(lines_.back(), "\n");
  EXPECT_TRUE(lines_.front().starts_with("\r"));
}

TEST_F(ProgressPace, PrintsALineEveryFiveSecondsElsewhere) {
  Progress progress(clock_, Output(false), "x", ProgressUnit::kItems);
  progress.Start("x", 0, 12);
  for (uint64_t i = 1; i <= 12; ++i) {
    clock_.Advance(base::Seconds(1));
    progress.Update(i);
  }
  progress.Finish();
  ASSERT_EQ(lines_.size(), 3u);
  for (const std::string& line : lines_) EXPECT_TRUE(line.ends_with("\n"));
}

TEST_F(ProgressPace, FinishWithoutStartPrintsNothing) {
  Progress progress(clock_, Output(true), "x", ProgressUnit::kItems);
  progress.Finish();
  EXPECT_TRUE(lines_.empty());
}

TEST_F(ProgressPace, NeverGoesBack) {
  Progress progress(clock_, Output(true), "x", ProgressUnit::kItems);
  progress.Start("x", 0, 10);
  progress.Update(7);
  progress.Update(5);
  progress.Finish();
  EXPECT_NE(lines_[lines_.size() - 2].find("7 of 10"), std::string::npos);
}

}  // namespace
}  // namespace plumb::cli
