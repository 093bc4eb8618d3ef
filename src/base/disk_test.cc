// base/disk_test.cc: files in a scratch folder, and each error that disk.h names.
// Tests run side by side, so each has a folder of its own.
#include "base/disk.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <span>

#include "base/testing/scratch_folder.h"

namespace plumb::base {
namespace {

class Disk : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return scratch_.File(name); }

 private:
  ScratchFolder scratch_;
};

TEST_F(Disk, WritesAndReadsWholeFiles) {
  ASSERT_TRUE(WriteFileAtomic(Path("a"), "one").ok());
  ASSERT_TRUE(WriteFileAtomic(Path("a"), "two").ok());
  EXPECT_EQ(*ReadFile(Path("a"), 3), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Path("")), {}), 1)
      << "no temporary file is left";
}

TEST_F(Disk, NamesWhyAFileCannotBeRead) {
  EXPECT_EQ(ReadFile(Path("none"), 10).status().code(), Code::kNotFound);
  EXPECT_EQ(ReadFile(Path(""), 10).status().code(), Code::kInvalidArgument);
  ASSERT_TRUE(WriteFileAtomic(Path("big"), "12345").ok());
  EXPECT_EQ(ReadFile(Path("big"), 4).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(WriteFileAtomic(Path("no/such/folder"), "x").code(), Code::kNotFound);
}

TEST_F(Disk, ReadsFilesOfTheKernelThatSayTheyAreEmpty) {
  const auto status = ReadFile("/proc/self/status", 1 << 20);
  ASSERT_TRUE(status.ok()) << status.status().ToString();
  EXPECT_NE(status->find("\nVmRSS:"), std::string::npos);
  EXPECT_EQ(ReadFile("/proc/self/status", 100).status().code(), Code::kInvalidArgument);
}

TEST_F(Disk, MapsAFileAndRefusesAnEmptyOne) {
  ASSERT_TRUE(WriteFileAtomic(Path("m"), "mapped").ok());
  auto map = MappedFile::Open(Path("m"));
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(static_cast<char>((*map)->bytes()[5]), 'd');
  ASSERT_TRUE(WriteFileAtomic(Path("empty"), "").ok());
  EXPECT_EQ(MappedFile::Open(Path("empty")).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(MappedFile::Open(Path("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(MappedFile::Open(Path("")).status().code(), Code::kInvalidArgument);
}

TEST_F(Disk, AdviceChangesNoByte) {
  const std::string path = Path("advised");
  std::string content(40000, 'x');
  content.back() = 'y';
  ASSERT_TRUE(WriteFileAtomic(path, content).ok());
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const std::span<const std::byte> bytes = (*file)->bytes();
  for (const MapAdvice advice : {MapAdvice::kRandom, MapAdvice::kWillNeed}) {
    for (const uint64_t first : {0u, 1u, 5000u, 39999u}) Advise(bytes.subspan(first), advice);
    Advise(bytes.subspan(100, 7), advice);
    Advise({}, advice);
    Advise(std::as_bytes(std::span(content)), advice);  // of no file
  }
  EXPECT_EQ(std::memcmp(bytes.data(), content.data(), content.size()), 0);
  EXPECT_EQ(content.front(), 'x');
}

TEST_F(Disk, AppendsToWhatIsKept) {
  ASSERT_TRUE(WriteFileAtomic(Path("j"), "whole\ntorn").ok());
  auto file = AppendFile::Open(Path("j"), 6);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("next\n").ok());
  ASSERT_TRUE((*file)->Flush().ok());
  EXPECT_EQ(*ReadFile(Path("j"), 100), "whole\nnext\n");
}

TEST_F(Disk, RefusesAPipeAndDoesNotWaitForItsOtherEnd) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(Path("pipe"), 10).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(MappedFile::Open(Path("pipe")).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(AppendFile::Open(Path("pipe")).status().code(), Code::kInvalidArgument);
}

TEST(DiskFull, ReportsAFailedWrite) {
  auto full = AppendFile::Open("/dev/full");
  EXPECT_EQ(full.status().code(), Code::kInvalidArgument) << "a device is not a regular file";
}

}  // namespace
}  // namespace plumb::base
