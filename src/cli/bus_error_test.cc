// cli/bus_error_test.cc
// In processes of their own: what is said before a cut file ends one, and that it does end.
#include "cli/bus_error.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "base/thread.h"

namespace plumb::cli {
namespace {

using testing::KilledBySignal;

constexpr size_t kFileBytes = 1u << 20;

// Reads the file's last byte through a map, on `threads` threads at once, after it was cut.
void ReadWhatIsGone(const std::string& path, int threads) {
  ExplainBusErrors();
  const auto file = base::MappedFile::Open(path);
  if (!file.ok()) return;
  std::filesystem::resize_file(path, 0);
  const auto read = [&file] {
    const volatile std::byte* const last = &(*file)->bytes().back();
    [[maybe_unused]] const std::byte gone = *last;
  };
  std::vector<base::Thread> readers;
  for (int i = 0; i < threads; ++i) readers.emplace_back("reader", read);
  for (base::Thread& reader : readers) reader.Join();
}

class BusErrorDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(base::WriteFileAtomic(path_, std::string(kFileBytes, 'x')).ok());
  }

  const base::ScratchFolder folder_;
  const std::string path_ = folder_.File("model-00001 of two.safetensors");
};

TEST_F(BusErrorDeathTest, ACutFileIsNamedOnceBeforeTheEnd) {
  EXPECT_EXIT(ReadWhatIsGone(path_, 1), KilledBySignal(SIGBUS),
              "^plumb: '" + path_ + "' was cut while in use[^\n]*\n$");
}

TEST_F(BusErrorDeathTest, ThreadsThatMeetItTogetherGiveOneWholeLine) {
  EXPECT_EXIT(ReadWhatIsGone(path_, 8), KilledBySignal(SIGBUS),
              "^plumb: '" + path_ + "' was cut while in use[^\n]*\n$");
}

TEST_F(BusErrorDeathTest, OneThatWasSentEndsAsBefore) {
  const auto sent = [] {
    ExplainBusErrors();
    kill(getpid(), SIGBUS);
    for (;;) pause();
  };
  EXPECT_EXIT(sent(), KilledBySignal(SIGBUS), "^$");
}

}  // namespace
}  // namespace plumb::cli
