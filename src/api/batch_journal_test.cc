// api/batch_journal_test.cc
// A journal cut at every byte, damaged at every byte, and on a disk that takes no more.
#include "api/batch_journal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/testing/scratch_folder.h"

namespace plumb::api {
namespace {

constexpr uint32_t kLines = 5;

std::string TextOf(const BatchJournal& journal, ResultKind kind) {
  std::string all;
  const base::Status status = journal.Read(kind, [&](std::string_view text) {
    all += text;
    return base::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  return all;
}

std::vector<LineResult> Results() {
  return {{.line = 3, .text = "{\"three\":3}"},
          {.line = 0, .kind = ResultKind::kError, .text = "{}"},
          {.line = 4, .text = std::string(300, 'x')},
          {.line = 1, .text = "{\"one\":\"\xea\xb0\x80\"}"}};
}

// A journal file with those four records, each flushed alone, and where each ends.
struct Written {
  Written() {
    auto journal = BatchJournal::Open(path, kLines);
    EXPECT_TRUE(journal.ok());
    for (const LineResult& result : Results()) {
      EXPECT_TRUE((*journal)->Append(std::span(&result, 1)).ok());
      bytes = *base::ReadFile(path, 1 << 20);
      ends.push_back(bytes.size());
    }
  }
  base::ScratchFolder scratch;
  const std::string path = scratch.File("j");
  std::string bytes;
  std::vector<size_t> ends;
};

TEST(BatchJournal, GivesResultsInTheOrderOfLines) {
  Written written;
  const auto journal = BatchJournal::Open(written.path, kLines);
  ASSERT_TRUE(journal.ok()) << journal.status().ToString();
  EXPECT_EQ(TextOf(**journal, ResultKind::kOutput),
            "{\"one\":\"\xea\xb0\x80\"}\n{\"three\":3}\n" + std::string(300, 'x') + "\n");
  EXPECT_EQ(TextOf(**journal, ResultKind::kError), "{}\n");
  EXPECT_EQ((*journal)->count(ResultKind::kOutput), 3u);
  EXPECT_EQ((*journal)->count(ResultKind::kError), 1u);
  EXPECT_FALSE((*journal)->Has(2));
}

TEST(BatchJournal, SurvivesACutAtEveryByte) {
  Written written;
  for (size_t size = 0; size <= written.bytes.size(); ++size) {
    ASSERT_TRUE(base::WriteFileAtomic(written.path, written.bytes.substr(0, size)).ok());
    auto journal = BatchJournal::Open(written.path, kLines);
    ASSERT_TRUE(journal.ok()) << size << " " << journal.status().ToString();
    uint32_t whole = 0;
    while (whole < written.ends.size() && written.ends[whole] <= size) ++whole;
    EXPECT_EQ((*journal)->done(), whole) << "cut at " << size;
    // What is missing is done again, and then all is there once.
    std::vector<LineResult> missing;
    for (LineResult& result : Results())
      if (!(*journal)->Has(result.line)) missing.push_back(std::move(result));
    ASSERT_TRUE((*journal)->Append(missing).ok());
    const auto again = BatchJournal::Open(written.path, kLines);
    EXPECT_EQ((*again)->done(), 4u) << "cut at " << size;
    EXPECT_EQ(TextOf(**again, ResultKind::kError), "{}\n") << "cut at " << size;
  }
}

TEST(BatchJournal, TrustsNoDamagedByte) {
  Written written;
  for (size_t at = 0; at < written.bytes.size(); ++at) {
    std::string damaged = written.bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    ASSERT_TRUE(base::WriteFileAtomic(written.path, damaged).ok());
    const auto journal = BatchJournal::Open(written.path, kLines);
    ASSERT_TRUE(journal.ok());
    uint32_t before = 0;
    while (written.ends[before] <= at) ++before;
    EXPECT_EQ((*journal)->done(), before) << "damaged at " << at;
  }
}

TEST(BatchJournal, ALineCountsOnce) {
  Written written;
  ASSERT_TRUE(base::WriteFileAtomic(written.path, written.bytes + written.bytes).ok());
  EXPECT_EQ((*BatchJournal::Open(written.path, kLines))->done(), 4u);
  EXPECT_EQ((*BatchJournal::Open(written.path, 1))->done(), 0u) << "lines that the batch has not";
}

TEST(BatchJournal, AFullDiskTakesNothingAndThenGoesOn) {
  Written written;
  auto journal = BatchJournal::Open(written.path, kLines);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = written.bytes.size() + 40, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<LineResult> more = {{.line = 2, .text = "two"}};
  const base::Status status = (*journal)->Append(more);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.reason(), "disk_full");
  EXPECT_EQ(status.message().find(written.path), std::string::npos);
  EXPECT_FALSE((*journal)->Has(2));
  EXPECT_EQ(base::ReadFile(written.path, 1 << 20)->size(), written.bytes.size());
  EXPECT_TRUE((*journal)->Append(more).ok());
  EXPECT_EQ((*BatchJournal::Open(written.path, kLines))->done(), 5u);
}

}  // namespace
}  // namespace plumb::api
