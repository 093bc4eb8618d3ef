// base/file_stamp_test.cc
// A stamp is the same as long as a file is, and what has none.
#include "base/file_stamp.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"

namespace plumb::base {
namespace {

TEST(FileStamp, IsTheSameUntilTheFileIsAnother) {
  const ScratchFolder scratch;
  const std::string path = scratch.File("a"), link = scratch.File("link");
  ASSERT_TRUE(WriteFileAtomic(path, "one").ok());
  const auto before = StampFile(path);
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(before->size, 3u);
  EXPECT_GT(before->modified_ns, 1'600'000'000ll * 1'000'000'000);
  EXPECT_EQ(*StampFile(path), *before);
  std::filesystem::create_symlink(path, link);
  EXPECT_EQ(*StampFile(link), *before) << "a link is followed";
  ASSERT_TRUE(WriteFileAtomic(path, "two").ok());
  EXPECT_NE(*StampFile(path), *before);
  EXPECT_NE(StampFile(path)->inode, before->inode);
}

TEST(FileStamp, OnlyARegularFileHasOne) {
  const ScratchFolder scratch;
  EXPECT_EQ(StampFile(scratch.File("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(StampFile(scratch.path()).status().code(), Code::kInvalidArgument);
  ASSERT_EQ(mkfifo(scratch.File("pipe").c_str(), 0600), 0);
  EXPECT_EQ(StampFile(scratch.File("pipe")).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace plumb::base
