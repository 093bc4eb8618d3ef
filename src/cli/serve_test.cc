// cli/serve_test.cc
// Who may be served where, with which keys, and how much memory is set aside.
#include "cli/serve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "cli/serve_data.h"
#include "cli/serve_keys.h"

namespace plumb::cli {
namespace {

ServeSettings At(const char* host) {
  ServeSettings settings;
  settings.host = host;
  return settings;
}

TEST(CollectKeys, LoopbackNeedsNone) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"}) {
    EXPECT_TRUE(CollectKeys(At(host)).ok()) << host;
  }
}

TEST(CollectKeys, OtherAddressesNeedOne) {
  for (const char* host :
       {"0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.example.org", ""}) {
    EXPECT_EQ(CollectKeys(At(host)).status().field(), "--host") << host;
    ServeSettings settings = At(host);
    settings.api_keys = {"a-long-secret"};
    EXPECT_TRUE(CollectKeys(settings).ok()) << host;
  }
}

TEST(CollectKeys, ReadsAFileOfKeys) {
  const base::ScratchFolder scratch;
  const std::string path = scratch.File("keys");
  ASSERT_TRUE(base::WriteFileAtomic(path, "# ours\nfirst-key\r\n\nsecond-key").ok());
  ServeSettings settings = At("0.0.0.0");
  settings.api_keys = {"flag-key"};
  settings.api_key_file = path;
  EXPECT_EQ(KeyTexts(*CollectKeys(settings)),
            (std::vector<std::string>{"flag-key", "first-key", "second-key"}));
}

TEST(CollectKeys, AKeyMayHaveAName) {
  const base::ScratchFolder scratch;
  const std::string path = scratch.File("keys");
  ASSERT_TRUE(base::WriteFileAtomic(path, "alice   first-key\nsecond-key\n").ok());
  ServeSettings settings = At("0.0.0.0");
  settings.api_keys = {"bob_2 third-key"};
  settings.api_key_file = path;
  const auto keys = CollectKeys(settings);
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(KeyTexts(*keys), (std::vector<std::string>{"third-key", "first-key", "second-key"}));
  EXPECT_EQ((*keys)[0].name, "bob_2");
  EXPECT_EQ((*keys)[1].name, "alice");
  EXPECT_EQ((*keys)[2].name, "");
  settings.api_keys = {"alice third-key"};
  EXPECT_EQ(CollectKeys(settings).status().message(), "--api-key: two keys are called 'alice'");
  for (const char* bad : {"a.b third-key", "two words third-key", "alice ", " third-key"}) {
    settings.api_keys = {bad};
    EXPECT_EQ(CollectKeys(settings).status().field(), "--api-key") << bad;
  }
}

TEST(CollectKeys, AFileWithoutKeysIsAMistake) {
  const base::ScratchFolder scratch;
  const std::string path = scratch.File("empty");
  ASSERT_TRUE(base::WriteFileAtomic(path, "# nothing\n").ok());
  ServeSettings settings = At("127.0.0.1");
  settings.api_key_file = path;
  EXPECT_EQ(CollectKeys(settings).status().field(), "--api-key-file");
  settings.api_key_file = "/no/such/file";
  EXPECT_EQ(CollectKeys(settings).status().field(), "--api-key-file");
}

TEST(CollectKeys, ABadKeyNamesTheFileItIsIn) {
  const base::ScratchFolder scratch;
  const std::string path = scratch.File("keys");
  ASSERT_TRUE(base::WriteFileAtomic(path, "a-long-secret\nshort\n").ok());
  ServeSettings settings = At("127.0.0.1");
  settings.api_keys = {"another-long-secret"};
  settings.api_key_file = path;
  const base::Status status = CollectKeys(settings).status();
  EXPECT_EQ(status.field(), "--api-key-file");
  EXPECT_TRUE(status.message().starts_with("--api-key-file: '" + path + "': key 2 "))
      << status.message();
}

TEST(CollectAdminKeys, OperatorsAlwaysNeedAKeyOfTheirOwn) {
  ServeSettings settings = At("127.0.0.1");
  EXPECT_TRUE(CollectAdminKeys(settings, {})->empty()) << "there is no such listener";
  settings.admin_port = 0;
  EXPECT_EQ(CollectAdminKeys(settings, {}).status().field(), "--admin-port");
  settings.admin_keys = {"an-operators-key"};
  EXPECT_EQ(*CollectAdminKeys(settings, {{"", "a-callers-key"}}), settings.admin_keys);
  EXPECT_EQ(CollectAdminKeys(settings, {{"", "a-callers-key"}, {"", "an-operators-key"}})
                .status()
                .field(),
            "--admin-key");
  settings.admin_keys = {"short"};
  EXPECT_EQ(CollectAdminKeys(settings, {}).status().field(), "--admin-key");
  settings.admin_keys.clear();
  settings.admin_key_file = "/no/such/file";
  EXPECT_EQ(CollectAdminKeys(settings, {}).status().field(), "--admin-key-file");
}

TEST(OpenData, OneServerAFolder) {
  const base::ScratchFolder scratch;
  const base::SystemClock clock;
  telemetry::Logger logger({.level = telemetry::LogLevel::kOff});
  ServeSettings settings = At("127.0.0.1");
  FileLock none, first, second, third;
  EXPECT_EQ(*OpenData(settings, 1, clock, logger, none), nullptr) << "nothing is kept unasked";
  settings.data_dir = scratch.File("a/b");
  EXPECT_NE(*OpenData(settings, 1, clock, logger, first), nullptr);
  const base::Status busy = OpenData(settings, 1, clock, logger, second).status();
  EXPECT_EQ(busy.field(), "--data-dir");
  EXPECT_NE(busy.message().find("another server"), std::string::npos) << busy.message();
  ASSERT_TRUE(base::WriteFileAtomic(scratch.File("file"), "x").ok());
  settings.data_dir = scratch.File("file");
  EXPECT_EQ(OpenData(settings, 1, clock, logger, third).status().field(), "--data-dir");
}

TEST(AllowUploads, OnlyWhereFilesAreKept) {
  ServeSettings settings = At("127.0.0.1");
  net::HttpLimits limits;
  AllowUploads(settings, limits);
  EXPECT_TRUE(limits.body_limits.empty());
  settings.data_dir = "d";
  settings.file_bytes = 1000;
  AllowUploads(settings, limits);
  ASSERT_EQ(limits.body_limits.size(), 1u);
  EXPECT_EQ(limits.body_limits.front().path, "/v1/files");
  EXPECT_GE(limits.body_limits.front().bytes_max, limits.body_bytes_max);
  const uint64_t others = net::HttpLimits().bodies_bytes_max;
  EXPECT_GE(limits.bodies_bytes_max / 2, limits.body_limits.front().bytes_max + others / 2)
      << "a caller's half has room for an upload beside its other requests";
}

TEST(ParseSpeculation, TakesFourForms) {
  EXPECT_EQ(ParseSpeculation("off")->mode, engine::Speculation::kOff);
  EXPECT_EQ(ParseSpeculation("ngram")->mode, engine::Speculation::kNgram);
  EXPECT_EQ(ParseSpeculation("auto")->mode, engine::Speculation::kAuto);
  EXPECT_EQ(ParseSpeculation("draft:./a:b.gguf")->mode, engine::Speculation::kDraft);
  EXPECT_EQ(ParseSpeculation("draft:./a:b.gguf")->draft_model, "./a:b.gguf");
  for (const char* bad : {"", "on", "draft", "draft:", "Off", "ngram "}) {
    EXPECT_EQ(ParseSpeculation(bad).status().field(), "--speculation") << bad;
  }
}

TEST(KvMemory, HoldsTypicalSequencesAndAtLeastOneWholeContext) {
  constexpr uint64_t kPage = 1000;
  constexpr uint64_t kPlenty = UINT64_MAX;
  EXPECT_EQ(KvMemory({kPage, 8192, 64}, kPlenty), 64 * 16 * kPage);
  EXPECT_EQ(KvMemory({kPage, 131072, 1}, kPlenty), 1024 * kPage);
  EXPECT_EQ(KvMemory({kPage, 256, 64}, kPlenty), 64 * 2 * kPage);
}

TEST(KvMemory, StaysBelowHalfOfWhatIsAvailable) {
  EXPECT_EQ(KvMemory({1000, 8192, 64}, 100'000), 50u * 1000);
  EXPECT_EQ(KvMemory({1000, 8192, 64}, 0), 1000u) << "one page at least";
}

TEST(AvailableMemory, IsSomething) { EXPECT_GT(AvailableMemory(), uint64_t{1} << 20); }

TEST(AvailableMemory, IsAtMostWhatALimitOfAddressSpaceLeaves) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;  // all that is mapped
  ASSERT_GT(pages, 0u);
  constexpr uint64_t kLeft = uint64_t{1} << 28;
  rlimit limited = before;
  limited.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + kLeft;
  if (limited.rlim_cur > before.rlim_cur) GTEST_SKIP() << "there is a lower limit already";
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const uint64_t available = AvailableMemory();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_LE(available, kLeft);
  EXPECT_GT(available, kLeft / 2);
}

}  // namespace
}  // namespace plumb::cli
