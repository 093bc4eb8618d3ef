// cli/bench_test.cc
// What `plumb bench engine` refuses before it loads anything.
#include "cli/bench.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "base/thread.h"

namespace plumb::cli {
namespace {

std::optional<std::string> NoVariable(const std::string&) { return std::nullopt; }

TEST(RunBench, RefusesToWriteOneFileOverAnother) {
  const base::ScratchFolder folder;
  const std::string model = folder.File("m.gguf");
  ASSERT_TRUE(base::WriteFileAtomic(model, "weights").ok());
  std::filesystem::create_symlink("m.gguf", folder.File("link"));
  const auto field = [&](const std::string& csv, const std::string& plot) {
    BenchSettings settings;
    settings.engine.model = model;
    settings.csv = csv.empty() ? "" : folder.File(csv);
    settings.plot = plot.empty() ? "" : folder.File(plot);
    return RunBench(settings, NoVariable).field();
  };
  EXPECT_EQ(field("x", "x"), "--plot");
  EXPECT_EQ(field("x", "./x"), "--plot") << "there or not, by any name";
  EXPECT_EQ(field("m.gguf", ""), "--csv");
  EXPECT_EQ(field("", "link"), "--plot");
  // Nor over anything else that is no report: a model's other files, say.
  ASSERT_TRUE(base::WriteFileAtomic(folder.File("other"), "weights").ok());
  EXPECT_EQ(field("other", ""), "--csv");
  EXPECT_EQ(field("", "other"), "--plot");
  EXPECT_EQ(base::ReadFile(folder.File("other"), 100).value_or(""), "weights");
  // A run that fails leaves no empty report.
  EXPECT_NE(field("new", ""), "--csv");
  EXPECT_FALSE(std::filesystem::exists(folder.File("new")));
  EXPECT_EQ(base::ReadFile(model, 100).value_or(""), "weights");
  EXPECT_FALSE(std::filesystem::exists(folder.File("x")));
}

TEST(CheckBenchThreads, RefusesMoreThanTwiceTheProcessors) {
  EXPECT_TRUE(CheckBenchThreads(1, 1).ok());
  EXPECT_TRUE(CheckBenchThreads(4, 2).ok());
  EXPECT_EQ(CheckBenchThreads(5, 2).field(), "--threads");
  EXPECT_EQ(CheckBenchThreads(512, 2).code(), base::Code::kInvalidArgument);
  EXPECT_TRUE(CheckBenchThreads(UINT32_MAX, UINT32_MAX).ok());
  BenchSettings settings;
  settings.engine.threads = 512;
  settings.engine.model = "nowhere.gguf";
  if (2 * base::UsableProcessors() < settings.engine.threads) {
    EXPECT_EQ(RunBench(settings, NoVariable).field(), "--threads") << "before anything is loaded";
  }
}

}  // namespace
}  // namespace plumb::cli
