// base/folder_test.cc: names in a scratch folder, and a disk that takes no more.
// Tests run side by side, so each has a folder of its own.
#include "base/folder.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"

namespace plumb::base {
namespace {

class Folder : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return scratch_.File(name); }

 private:
  ScratchFolder scratch_;
};

TEST_F(Folder, MakesAndListsFolders) {
  EXPECT_EQ(ListFolder(Path("a"), 10).status().code(), Code::kNotFound);
  ASSERT_TRUE(MakeFolder(Path("a/b")).ok());
  ASSERT_TRUE(MakeFolder(Path("a/b")).ok()) << "it is there";
  ASSERT_TRUE(WriteFileAtomic(Path("a/2"), "x").ok());
  ASSERT_TRUE(WriteFileAtomic(Path("a/1"), "y").ok());
  EXPECT_THAT(*ListFolder(Path("a"), 3), testing::ElementsAre("1", "2", "b"));
  EXPECT_EQ(ListFolder(Path("a"), 2).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(MakeFolder(Path("a/1/c")).code(), Code::kInternal) << "a file is no folder";
  EXPECT_EQ(MakeFolder(Path("a/1")).code(), Code::kInternal);
  struct stat info{};
  ASSERT_EQ(stat(Path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(Folder, RenamesAndRemoves) {
  ASSERT_TRUE(WriteFileAtomic(Path("a"), "new").ok());
  ASSERT_TRUE(WriteFileAtomic(Path("b"), "old").ok());
  ASSERT_TRUE(RenameFile(Path("a"), Path("b")).ok());
  EXPECT_EQ(*ReadFile(Path("b"), 9), "new");
  EXPECT_EQ(RenameFile(Path("a"), Path("b")).code(), Code::kNotFound);
  ASSERT_TRUE(RemoveFile(Path("b")).ok());
  ASSERT_TRUE(RemoveFile(Path("b")).ok()) << "it is gone already";
  EXPECT_EQ(RemoveFile(Path("")).code(), Code::kInternal) << "a folder";
}

// The limit of the process stands for the disk's: the system says it with another errno alone.
TEST_F(Folder, AFullDiskHasAReason) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status whole = WriteFileAtomic(Path("a"), std::string(2000, 'x'));
  auto file = AppendFile::Open(Path("b"));
  ASSERT_TRUE(file.ok());
  const Status appended = (*file)->Append(std::string(2000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  for (const Status& status : {whole, appended}) {
    EXPECT_EQ(status.code(), Code::kOverloaded);
    EXPECT_EQ(status.reason(), "disk_full");
    EXPECT_GT(status.retry_after_ms(), 0u);
  }
  EXPECT_THAT(*ListFolder(Path(""), 9), testing::ElementsAre("b")) << "no half of a file is left";
}

}  // namespace
}  // namespace plumb::base
