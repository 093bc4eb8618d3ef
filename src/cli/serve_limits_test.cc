// cli/serve_limits_test.cc
// Whose limits are which, and what a mistake in the file is told.
#include "cli/serve_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"

namespace plumb::cli {
namespace {

using testing::HasSubstr;

class Limits : public testing::Test {
 protected:
  base::Result<std::vector<tenancy::KeyLimits>> Read(std::string_view content,
                                                     const std::vector<CallerKey>& keys) {
    EXPECT_TRUE(base::WriteFileAtomic(path_, content).ok());
    return ReadLimits(path_, keys);
  }

  const base::ScratchFolder scratch_;
  const std::string path_ = scratch_.File("limits.toml");
};

TEST_F(Limits, NoFileIsNoLimits) { EXPECT_TRUE(ReadLimits("", {{"", "a-long-secret"}})->empty()); }

TEST_F(Limits, ATableWinsOverTheTop) {
  const auto limits = Read(
      "requests-per-minute = 60\ntokens-per-minute = 1_000\n"
      "[alice]\ntokens-per-minute = 5000\nconcurrent-requests = 2\n"
      "[bob-2]\nrequests-per-minute = 0\n",
      {{"alice", "first-secret"}, {"", "second-secret"}, {"bob-2", "third-secret"}});
  ASSERT_TRUE(limits.ok()) << limits.status().message();
  EXPECT_EQ(*limits, (std::vector<tenancy::KeyLimits>{{60, 5000, 2}, {60, 1000, 0}, {0, 1000, 0}}));
}

TEST_F(Limits, WithoutKeysTheTopIsForAllCallers) {
  EXPECT_EQ(*Read("concurrent-requests = 3", {}), (std::vector<tenancy::KeyLimits>{{0, 0, 3}}));
}

TEST_F(Limits, AMistakeIsNamedWithItsLine) {
  struct Case {
    const char* content;
    const char* says;
  };
  const Case cases[] = {
      {"requests-per-minut = 1", ":1: requests-per-minut: no such limit; did you mean"},
      {"\n[alise]\ntokens-per-minute = 1", ":3: no key is called 'alise'; did you mean 'alice'"},
      {"tokens-per-minute = -1", "'-1' is no whole number from 0"},
      {"tokens-per-minute = 1.5", "'1.5' is no whole number from 0"},
      {"tokens-per-minute = \"many\"", "'many' is no whole number from 0"},
      {"tokens-per-minute = 100000001", "is no whole number from 0"},
      {"tokens-per-minute = 99999999999999", "is no whole number from 0"},
      {"tokens-per-minute = [1, 2]", "takes one value, not a list"},
      {"[alice]\ntokens-per-minute = true", ":2: alice.tokens-per-minute: 'true' is no whole"},
      {"tokens-per-minute", ":1: "},
  };
  for (const Case& one : cases) {
    const auto limits = Read(one.content, {{"alice", "first-secret"}});
    ASSERT_FALSE(limits.ok()) << one.content;
    EXPECT_EQ(limits.status().field(), "--limits");
    EXPECT_THAT(limits.status().message(), HasSubstr(one.says));
    EXPECT_THAT(limits.status().message(), testing::StartsWith("--limits: "));
    EXPECT_THAT(limits.status().message(), testing::Not(HasSubstr("secret")));
  }
  EXPECT_EQ(ReadLimits("/no/such/file", {}).status().field(), "--limits");
}

}  // namespace
}  // namespace plumb::cli
