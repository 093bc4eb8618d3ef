// cli/kept_digests_test.cc
// What is kept comes back, models do not mix, and there are never more of them than the maximum.
#include "cli/kept_digests.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/folder.h"
#include "base/testing/scratch_folder.h"

namespace plumb::cli {
namespace {

using base::Code;

KeptDigest Entry(char digit, uint64_t size) {
  return {.path_digest = std::string(64, digit),
          .stamp = {.size = size,
                    .modified_ns = -5,
                    .changed_ns = INT64_MAX,
                    .inode = UINT64_MAX,
                    .device = 2},
          .digest = std::string(64, 'f')};
}

class KeptDigestsOf : public testing::Test {
 protected:
  size_t Records() const {
    const auto names = base::ListFolder(cache_.File("cache/digests"), 10'000);
    return names.ok() ? names->size() : 0;
  }
  const base::ScratchFolder cache_;
  const KeptDigests kept_{cache_.File("cache")};
};

TEST_F(KeptDigestsOf, ComesBackByModel) {
  const std::vector<KeptDigest> two = {Entry('a', 0), Entry('b', UINT64_MAX)};
  EXPECT_TRUE(kept_.Load("/m").empty());
  ASSERT_TRUE(kept_.Save("/m", two).ok());
  ASSERT_TRUE(kept_.Save("/n", {}).ok());
  EXPECT_EQ(kept_.Load("/m"), two);
  EXPECT_TRUE(kept_.Load("/n").empty());
  ASSERT_TRUE(kept_.Save("/m", std::vector{Entry('c', 1)}).ok());
  EXPECT_EQ(kept_.Load("/m"), std::vector{Entry('c', 1)});
}

TEST_F(KeptDigestsOf, TheModelsWrittenLongestAgoGo) {
  for (uint32_t i = 0; i < KeptDigests::kModelsMax; ++i) {
    ASSERT_TRUE(kept_.Save(std::to_string(i), std::vector{Entry('a', i)}).ok());
  }
  // What else lies there is left alone; the first model's record is made the newest.
  ASSERT_TRUE(base::WriteFileAtomic(cache_.File("cache/digests/notes"), "mine").ok());
  for (const auto& file : std::filesystem::directory_iterator(cache_.File("cache/digests"))) {
    std::filesystem::last_write_time(
        file, std::filesystem::last_write_time(file) - std::chrono::hours(1));
  }
  ASSERT_TRUE(kept_.Save("0", std::vector{Entry('a', 0)}).ok());
  ASSERT_TRUE(kept_.Save("one more", std::vector{Entry('b', 0)}).ok());
  EXPECT_EQ(Records(), KeptDigests::kModelsMax + 1) << "with the notes";
  EXPECT_FALSE(kept_.Load("0").empty());
  EXPECT_FALSE(kept_.Load("one more").empty());
}

TEST_F(KeptDigestsOf, TooManyFilesAreNotKept) {
  const std::vector<KeptDigest> most(KeptDigests::kFilesMax, Entry('a', UINT64_MAX));
  ASSERT_TRUE(kept_.Save("/m", most).ok());
  EXPECT_EQ(kept_.Load("/m").size(), most.size());
  std::vector<KeptDigest> more = most;
  more.push_back(Entry('b', 0));
  EXPECT_EQ(kept_.Save("/m", more).code(), Code::kInvalidArgument);
  EXPECT_EQ(kept_.Load("/m").size(), most.size()) << "what was there stays";
}

TEST_F(KeptDigestsOf, AFolderOfManyOtherFilesIsNotTidied) {
  ASSERT_TRUE(base::MakeFolder(cache_.File("cache/digests")).ok());
  for (uint32_t i = 0; i < 16 * KeptDigests::kModelsMax; ++i) {
    std::filesystem::create_directory(cache_.File("cache/digests/" + std::to_string(i)));
  }
  EXPECT_EQ(kept_.Save("/m", std::vector{Entry('a', 1)}).code(), Code::kInvalidArgument);
  EXPECT_EQ(kept_.Load("/m").size(), 1u) << "it was written all the same";
}

TEST(KeptDigests, WithoutAFolderKeepsNothing) {
  const KeptDigests none("");
  EXPECT_TRUE(none.Save("/m", std::vector{Entry('a', 1)}).ok());
  EXPECT_TRUE(none.Load("/m").empty());
}

}  // namespace
}  // namespace plumb::cli
