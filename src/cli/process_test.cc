// cli/process_test.cc
// Programs of every Unix machine, run without a shell.
#include "cli/process.h"

#include <gtest/gtest.h>

namespace plumb::cli {
namespace {

TEST(RunProcess, PassesArgumentsAsTheyAre) {
  std::string output;
  const auto result = RunProcess({"echo", "a b", "$HOME;`x`", "*"}, 1000, output);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_EQ(output, "a b $HOME;`x` *\n");
}

TEST(RunProcess, GivesExitCodeAndErrorText) {
  std::string output;
  const auto result = RunProcess({"sh", "-c", "echo out; echo oops >&2; exit 7"}, 1000, output);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 7);
  EXPECT_EQ(result->error_text, "oops\n");
  EXPECT_EQ(output, "out\n");
}

TEST(RunProcess, KeepsTheEndOfALongErrorText) {
  std::string output;
  const auto result =
      RunProcess({"sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done"},
                 10, output);
  ASSERT_TRUE(result.ok());
  EXPECT_LE(result->error_text.size(), kErrorBytesMax);
  EXPECT_EQ(LastLine(result->error_text), "line 2999");
}

TEST(RunProcess, SaysWhenThereIsNoSuchProgram) {
  std::string output;
  const auto result = RunProcess({"plumb-no-such-program"}, 10, output);
  EXPECT_EQ(result.status().code(), base::Code::kNotFound);
}

TEST(RunProcess, StandardInputIsEmpty) {
  std::string output;
  const auto result = RunProcess({"cat"}, 10, output);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(output, "");
}

TEST(RunProcess, EndsTheProgramWhenTheSinkRefuses) {
  const auto result = RunProcess({"yes"}, [](std::string_view) { return base::Internal("full"); });
  EXPECT_EQ(result.status().message(), "full");
}

TEST(RunProcess, BoundsTheOutput) {
  std::string output;
  const auto result = RunProcess({"yes"}, 100, output);
  EXPECT_EQ(result.status().code(), base::Code::kInternal);
  EXPECT_LE(output.size(), 100u);
}

TEST(RunProcess, ReportsSignals) {
  std::string output;
  const auto result = RunProcess({"sh", "-c", "kill -9 $$"}, 10, output);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code, 128 + 9);
}

TEST(LastLine, SkipsEmptyEnds) {
  EXPECT_EQ(LastLine("a\nb\n\n \n"), "b");
  EXPECT_EQ(LastLine("only"), "only");
  EXPECT_EQ(LastLine(""), "");
}

}  // namespace
}  // namespace plumb::cli
