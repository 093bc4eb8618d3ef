// cli/content_hash_test.cc
// What the hash of a model's files covers, what it refuses rather than wait for, and when a file is
// not read again.
#include "cli/content_hash.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/folder.h"
#include "base/testing/scratch_folder.h"
#include "cli/sha256.h"

namespace plumb::cli {
namespace {

using base::Code;

constexpr const char* kOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

class ContentHashOf : public testing::Test {
 protected:
  ContentHashOf() {
    Store("config.json", "{}");
    Store("model.safetensors", "weights");
  }
  void Store(const std::string& name, const std::string& content) const {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.File(name), content).ok());
  }
  void Pipe(const std::string& name) const {
    std::filesystem::remove(folder_.File(name));
    ASSERT_EQ(mkfifo(folder_.File(name).c_str(), 0600), 0);
  }
  std::string Folder() const {
    const auto hash = ContentHash(folder_.path());
    EXPECT_TRUE(hash.ok()) << hash.status().ToString();
    return hash.value_or("");
  }

  const base::ScratchFolder folder_;
};

TEST_F(ContentHashOf, AFolderIsOfNamesAndHashes) {
  Sha256 config, weights, all;
  config.Update("{}");
  weights.Update("weights");
  all.Update("config.json " + config.Finish() + "\nmodel.safetensors " + weights.Finish() + "\n");
  EXPECT_EQ(Folder(), all.Finish());
}

TEST_F(ContentHashOf, AnEmptyFileCountsAsNoBytes) {
  const std::string without = Folder();
  Store("chat_template.jinja", "");
  const std::string with = Folder();
  EXPECT_EQ(with.size(), 64u);
  EXPECT_NE(with, without);
  EXPECT_EQ(ContentHash(folder_.File("chat_template.jinja")).value_or(""), kOfNothing);
}

TEST_F(ContentHashOf, APipeIsRefusedNotWaitedFor) {
  Pipe("tokenizer.json");
  const base::Status side = ContentHash(folder_.path()).status();
  EXPECT_EQ(side.code(), Code::kCorrupt);
  EXPECT_EQ(side.field(), "tokenizer.json");
  EXPECT_EQ(ContentHash(folder_.File("tokenizer.json")).status().code(), Code::kInvalidArgument);
  std::filesystem::remove(folder_.File("tokenizer.json"));
  Pipe("model.safetensors");
  const base::Status weights = ContentHash(folder_.path()).status();
  EXPECT_EQ(weights.code(), Code::kCorrupt);
  EXPECT_EQ(weights.field(), "model.safetensors");
}

TEST_F(ContentHashOf, AMissingFileIsAnError) {
  EXPECT_EQ(ContentHash(folder_.File("none.gguf")).status().code(), Code::kNotFound);
}

// The same folder, of "{}" and "weights", seen through a clock of the test's.
class FindContentHashOf : public ContentHashOf {
 protected:
  FindContentHashOf() { LetAge("config.json"), LetAge("model.safetensors"); }

  // The clock stands where the file has just become old enough to be kept.
  void LetAge(const std::string& name) {
    const auto stamp = base::StampFile(folder_.File(name));
    ASSERT_TRUE(stamp.ok());
    const int64_t now_s = stamp->changed_ns / 1'000'000'000 + kYoungSeconds;
    clock_.Advance(base::Duration{std::max<int64_t>(0, now_s * 1'000'000'000 - clock_.Now().ns)});
  }
  // Bytes that had to be read.
  uint64_t Read() {
    uint64_t announced = 0, read = 0;
    const auto found = FindContentHash(folder_.path(), kept_, clock_, pool_,
                                       {.on_start = [&](uint64_t bytes) { announced = bytes; },
                                        .on_progress = [&](uint64_t bytes) { read = bytes; }});
    EXPECT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_EQ(read, announced);
    if (found.ok()) {
      EXPECT_EQ(found->content, Folder());
      kept_status_ = found->kept;
    }
    return read;
  }
  std::string KeptFile() const {
    const auto names = base::ListFolder(cache_.File("digests"), 10);
    return names.ok() && names->size() == 1 ? cache_.File("digests/" + names->front()) : "";
  }

  static constexpr uint64_t kAll = 2 + 7;  // bytes of both files
  const base::ScratchFolder cache_;
  const KeptDigests kept_{cache_.path()};
  base::ManualClock clock_;
  tensor::ThreadPool pool_{{.threads = 3}};
  base::Status kept_status_;
};

TEST_F(FindContentHashOf, WhatIsUnchangedIsReadOnce) {
  EXPECT_EQ(Read(), kAll);
  EXPECT_TRUE(kept_status_.ok()) << kept_status_.ToString();
  EXPECT_EQ(Read(), 0u);
}

TEST_F(FindContentHashOf, OtherContentOfTheSameSizeIsRead) {
  EXPECT_EQ(Read(), kAll);
  Store("model.safetensors", "WEIGHTS");
  EXPECT_EQ(Read(), 7u) << "config.json is as it was";
  LetAge("model.safetensors");
  EXPECT_THAT(Read(), testing::AnyOf(0u, 7u)) << "it may have been too young to be kept";
  EXPECT_EQ(Read(), 0u);
}

TEST_F(FindContentHashOf, AChangeWithItsTimeAndSizePutBackIsSeen) {
  const auto before = base::StampFile(folder_.File("model.safetensors"));
  const auto time = std::filesystem::last_write_time(folder_.File("model.safetensors"));
  EXPECT_EQ(Read(), kAll);
  // In place, so that the inode is the same; at least a step of the file system's time later.
  base::Result<base::FileStamp> after = before;
  while (after->changed_ns == before->changed_ns) {
    const int file = open(folder_.File("model.safetensors").c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(write(file, "WEIGHTS", 7), 7);
    close(file);
    std::filesystem::last_write_time(folder_.File("model.safetensors"), time);
    after = base::StampFile(folder_.File("model.safetensors"));
  }
  ASSERT_EQ(after->modified_ns, before->modified_ns);
  ASSERT_EQ(after->inode, before->inode);
  EXPECT_EQ(Read(), 7u);
}

TEST_F(FindContentHashOf, WhatIsYoungOrFromTheFutureIsReadAgain) {
  base::ManualClock beginning, early;
  early.Advance({clock_.Now().ns - base::Seconds(2).ns});
  for (const base::Clock* clock : {&early, &beginning}) {
    uint64_t read = 0;
    const auto found =
        FindContentHash(folder_.path(), kept_, *clock, pool_,
                        {.on_start = {}, .on_progress = [&](uint64_t bytes) { read = bytes; }});
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(read, kAll);
    EXPECT_TRUE(found->kept.ok());
    EXPECT_EQ(KeptFile(), "") << "nothing was worth keeping";
  }
}

TEST_F(FindContentHashOf, ADamagedRecordCountsAsNone) {
  EXPECT_EQ(Read(), kAll);
  const std::string whole = base::ReadFile(KeptFile(), 1 << 20).value_or("");
  ASSERT_GT(whole.size(), 200u);
  // Each byte in turn: another one, and cut there.
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = damaged[at] == '0' ? '1' : '0';
    for (const std::string& content : {damaged, whole.substr(0, at)}) {
      ASSERT_TRUE(base::WriteFileAtomic(KeptFile(), content).ok());
      EXPECT_EQ(Read(), kAll) << at;
      EXPECT_EQ(base::ReadFile(KeptFile(), 1 << 20).value_or(""), whole) << "it is replaced";
    }
  }
}

TEST_F(FindContentHashOf, WithoutAPlaceToWriteSaysSoAndAnswers) {
  const KeptDigests nowhere(cache_.File("file"));
  ASSERT_TRUE(base::WriteFileAtomic(cache_.File("file"), "no folder").ok());
  const auto found = FindContentHash(folder_.path(), nowhere, clock_, pool_);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->content, Folder());
  EXPECT_EQ(found->kept.code(), Code::kInternal);
  const auto unwanted = FindContentHash(folder_.path(), KeptDigests(""), clock_, pool_);
  ASSERT_TRUE(unwanted.ok());
  EXPECT_TRUE(unwanted->kept.ok()) << "nobody asked for it";
}

TEST_F(FindContentHashOf, AFileThatCannotBeReadIsAnError) {
  std::filesystem::remove(folder_.File("model.safetensors"));
  EXPECT_FALSE(FindContentHash(folder_.path(), kept_, clock_, pool_).ok());
  EXPECT_EQ(FindContentHash(folder_.File("none"), kept_, clock_, pool_).status().code(),
            Code::kNotFound);
}

}  // namespace
}  // namespace plumb::cli
