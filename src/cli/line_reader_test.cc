// cli/line_reader_test.cc
// Lines of files and of inputs that are read in pieces.
#include "cli/line_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "base/disk.h"
#include "cli/line_input.h"

namespace plumb::cli {
namespace {

std::vector<FileLine> Lines(std::string_view content, uint64_t line_bytes_max = 100) {
  const std::string path = testing::TempDir() + "/line_reader_test." + std::to_string(getpid());
  EXPECT_TRUE(base::WriteFileAtomic(path, content).ok());
  const auto reader = LineReader::Open(path, line_bytes_max).value();
  std::vector<FileLine> lines;
  while (auto line = reader->Next().value()) lines.push_back(*line);
  unlink(path.c_str());
  return lines;
}

TEST(LineReader, GivesNumberPlaceAndSize) {
  const auto lines = Lines("one\r\n\ntwo");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, "one");
  EXPECT_EQ(lines[0].size, 5u);
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[2].text, "two");
  EXPECT_EQ(lines[2].number, 3u);
  EXPECT_EQ(lines[2].offset, 6u);
  EXPECT_TRUE(lines[1].terminated);
  EXPECT_FALSE(lines[2].terminated);
}

TEST(LineReader, AnEmptyFileHasNoLine) { EXPECT_TRUE(Lines("").empty()); }

TEST(LineReader, CutsLongLinesAndGoesOn) {
  const auto lines = Lines(std::string(1000, 'x') + "\nshort\n", 10);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].too_long);
  EXPECT_EQ(lines[0].text.size(), 10u);
  EXPECT_EQ(lines[0].size, 1001u);
  EXPECT_EQ(lines[1].text, "short");
  EXPECT_FALSE(lines[1].too_long);
}

TEST(LineReader, LinesLongerThanItsBuffer) {
  const std::string long_line(600'000, 'y');
  const auto lines = Lines(long_line + "\n" + long_line, 1u << 20);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text, long_line);
  EXPECT_EQ(lines[1].text, long_line);
}

TEST(LineReader, SaysWhatCannotBeRead) {
  EXPECT_EQ(LineReader::Open("/no/such/file", 10).status().code(), base::Code::kNotFound);
  EXPECT_EQ(LineReader::Open("/", 10).status().code(), base::Code::kInvalidArgument);
}

class LineInputTest : public testing::Test {
 protected:
  LineInputTest() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~LineInputTest() override {
    close(ends_[0]);
    CloseInput();
  }
  void Type(std::string_view text) {
    ASSERT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void CloseInput() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  std::array<int, 2> ends_;
  Signals signals_{SIGUSR1};
};

TEST_F(LineInputTest, GivesLinesAndTheLastWithoutLineEnd) {
  LineInput input(ends_[0], signals_);
  Type("one\ntwo\r\nlast");
  CloseInput();
  EXPECT_EQ(input.Next().line, "one");
  EXPECT_EQ(input.Next().line, "two");
  EXPECT_EQ(input.Next().line, "last");
  EXPECT_EQ(input.Next().kind, LineInput::Kind::kEnd);
  EXPECT_EQ(input.Next().kind, LineInput::Kind::kEnd);
}

TEST_F(LineInputTest, ASignalInterruptsAndTheNextLineIsRead) {
  LineInput input(ends_[0], signals_);
  raise(SIGUSR1);
  EXPECT_EQ(input.Next().kind, LineInput::Kind::kInterrupt);
  EXPECT_EQ(signals_.count(), 1u);
  Type("after\n");
  EXPECT_EQ(input.Next().line, "after");
}

}  // namespace
}  // namespace plumb::cli
