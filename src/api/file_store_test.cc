// api/file_store_test.cc
// The store of files: whose they are, what is left of them after a crash at any moment, and what
// it does when there is no room.
#include "api/file_store.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "api/stored_record.h"
#include "base/folder.h"
#include "base/testing/scratch_folder.h"

namespace plumb::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr base::Hash256 kOne{{1}};
constexpr base::Hash256 kTwo{{2}};

struct FileStoreTest : testing::Test {
  std::unique_ptr<FileStore> Open(FileLimits limits = {}) {
    auto opened = FileStore::Open(folder, limits, clock, logger);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    return *std::move(opened);
  }
  base::Result<const StoredFile*> Add(FileStore& store, const base::Hash256& caller,
                                      const std::string& content, int64_t expires_at = 0) {
    const std::string id = NewStoredId(kFileIdPrefix);
    ASSIGN_OR_RETURN(auto writer, store.Begin(id));
    RETURN_IF_ERROR(writer->Append(content));
    return store.Commit(std::move(writer), {.id = id,
                                            .caller = caller,
                                            .filename = "n\"\\\n../x",
                                            .purpose = "batch",
                                            .expires_at = expires_at});
  }
  std::string ContentOf(const FileStore& store, const StoredFile& file) {
    const auto map = store.Map(file);
    if (!map.ok()) return map.status().ToString();
    const auto bytes = (*map)->bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::vector<std::string> Names() { return *base::ListFolder(folder, 1000); }
  std::string Path(const std::string& name) const { return folder + "/" + name; }

  base::ScratchFolder scratch;
  const std::string folder = scratch.File("files");
  base::ManualClock clock;
  telemetry::Logger logger{{.level = telemetry::LogLevel::kOff}};
};

TEST_F(FileStoreTest, KeepsFilesOverARestart) {
  clock.Advance(base::Seconds(1000));
  std::string id;
  {
    auto store = Open();
    const auto added = Add(*store, kOne, "one");
    ASSERT_TRUE(added.ok()) << added.status().ToString();
    id = (*added)->id;
    ASSERT_TRUE(Add(*store, kOne, "two").ok());
  }
  auto store = Open();
  const StoredFile* file = store->Find(kOne, id);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->filename, "n\"\\\n../x");
  EXPECT_EQ(file->bytes, 3u);
  EXPECT_EQ(file->created_at, 1000);
  EXPECT_EQ(ContentOf(*store, *file), "one");
  EXPECT_EQ(store->count(), 2u);
  EXPECT_EQ(store->bytes(), 6u);
  EXPECT_EQ(store->List(kOne).front()->id, id) << "oldest first";
}

TEST_F(FileStoreTest, CallersSeeTheirOwnAlone) {
  auto store = Open();
  const std::string id = (*Add(*store, kOne, "x"))->id;
  EXPECT_EQ(store->Find(kTwo, id), nullptr);
  EXPECT_TRUE(store->List(kTwo).empty());
  ASSERT_TRUE(Add(*store, kTwo, "y").ok());
  ASSERT_TRUE(store->Remove(kTwo, id).ok());
  EXPECT_NE(store->Find(kOne, id), nullptr) << "another's is not removed";
  ASSERT_TRUE(store->Remove(kOne, id).ok());
  EXPECT_EQ(store->Find(kOne, id), nullptr);
  EXPECT_EQ(store->bytes(), 1u);
}

TEST_F(FileStoreTest, IdsThatAreNoneNameNothing) {
  auto store = Open();
  for (const char* id : {"", "..", "../x", "file-", "file-../../etc/passwd", "file-0123"})
    EXPECT_EQ(store->Find(kOne, id), nullptr) << id;
}

// Each state that a crash can leave: the steps of Commit are data under its own name as .part,
// data, and the record.
TEST_F(FileStoreTest, ACrashLeavesAWholeFileOrNone) {
  std::string id;
  {
    auto store = Open();
    id = (*Add(*store, kOne, "content"))->id;
  }
  const std::string record = *base::ReadFile(Path(id + ".json"), 1000);
  const auto reset = [&](const std::string& kind, const std::string& content) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    ASSERT_TRUE(base::WriteFileAtomic(Path(id + kind), content).ok());
  };
  for (size_t size = 0; size <= 7; ++size) {
    reset(".part", std::string("content").substr(0, size));
    EXPECT_EQ(Open()->count(), 0u);
    EXPECT_THAT(Names(), IsEmpty()) << "half a file is taken away";
  }
  reset(".data", "content");
  EXPECT_EQ(Open()->count(), 0u);
  EXPECT_THAT(Names(), IsEmpty());
  for (size_t size = 0; size < record.size(); ++size) {
    reset(".data", "content");
    ASSERT_TRUE(base::WriteFileAtomic(Path(id + ".json.tmp77"), record.substr(0, size)).ok());
    EXPECT_EQ(Open()->count(), 0u) << size;
    EXPECT_THAT(Names(), IsEmpty()) << size;
  }
  reset(".data", "content");
  ASSERT_TRUE(base::WriteFileAtomic(Path(id + ".json"), record).ok());
  auto store = Open();
  ASSERT_NE(store->Find(kOne, id), nullptr);
  EXPECT_EQ(ContentOf(*store, *store->Find(kOne, id)), "content");
}

TEST_F(FileStoreTest, DamagedRecordsAndDataAreLeftOutAndLeftAlone) {
  std::string id;
  {
    auto store = Open();
    id = (*Add(*store, kOne, "content"))->id;
  }
  const std::string record = *base::ReadFile(Path(id + ".json"), 1000);
  for (size_t size = 0; size < record.size(); ++size) {
    ASSERT_TRUE(base::WriteFileAtomic(Path(id + ".json"), record.substr(0, size)).ok());
    EXPECT_EQ(Open()->count(), 0u) << size;
    EXPECT_THAT(Names(), ElementsAre(id + ".data", id + ".json")) << size;
  }
  ASSERT_TRUE(base::WriteFileAtomic(Path(id + ".json"), record).ok());
  ASSERT_TRUE(base::WriteFileAtomic(Path(id + ".data"), "short").ok());
  EXPECT_EQ(Open()->count(), 0u);
  // Of another id, by a copy.
  const std::string other = NewStoredId(kFileIdPrefix);
  ASSERT_TRUE(base::WriteFileAtomic(Path(other + ".json"), record).ok());
  ASSERT_TRUE(base::WriteFileAtomic(Path(other + ".data"), "content").ok());
  EXPECT_EQ(Open()->count(), 0u);
}

TEST_F(FileStoreTest, LeavesAloneWhatIsNotOurs) {
  Open();
  ASSERT_TRUE(base::WriteFileAtomic(Path("notes.part"), "mine").ok());
  ASSERT_TRUE(base::WriteFileAtomic(Path("file-zz.data"), "mine").ok());
  Open();
  EXPECT_THAT(Names(), ElementsAre("file-zz.data", "notes.part"));
}

TEST_F(FileStoreTest, RefusesWhatThereIsNoRoomFor) {
  auto store = Open({.file_bytes_max = 10,
                     .storage_bytes_max = 20,
                     .caller_files_max = 3,
                     .files_max = 4,
                     .shared = false});
  EXPECT_EQ(store->CheckRoom(kOne, 11).reason(), "request_too_large");
  ASSERT_TRUE(Add(*store, kOne, "0123456789").ok());
  EXPECT_TRUE(store->CheckRoom(kTwo, 10).ok());
  ASSERT_TRUE(Add(*store, kOne, "01234").ok());
  EXPECT_EQ(store->CheckRoom(kTwo, 10).code(), base::Code::kOverloaded);
  EXPECT_EQ(store->CheckRoom(kTwo, 10).reason(), "storage_full");
  ASSERT_TRUE(Add(*store, kOne, "0").ok());
  EXPECT_EQ(store->CheckRoom(kOne, 1).code(), base::Code::kQuotaExceeded);
  EXPECT_TRUE(store->CheckRoom(kTwo, 1).ok());
  ASSERT_TRUE(Add(*store, kTwo, "0").ok());
  EXPECT_EQ(store->CheckRoom(kTwo, 1).reason(), "storage_full") << "as many files as there may be";
}

TEST_F(FileStoreTest, LeavesRoomForOthers) {
  auto store = Open({.file_bytes_max = 10, .storage_bytes_max = 40, .files_max = 7});
  ASSERT_TRUE(Add(*store, kOne, "0123456789").ok());
  EXPECT_TRUE(store->CheckRoom(kOne, 10).ok()) << "alone it has half";
  ASSERT_TRUE(Add(*store, kOne, "0123456789").ok());
  const base::Status greedy = store->CheckRoom(kOne, 1);
  EXPECT_EQ(greedy.code(), base::Code::kQuotaExceeded);
  EXPECT_EQ(greedy.reason(), "storage_share");
  EXPECT_GT(greedy.retry_after_ms(), 0u);
  EXPECT_TRUE(store->CheckRoom(kTwo, 10).ok()) << "another has its share, and leaves as much";
  ASSERT_TRUE(Add(*store, kTwo, "0123456789").ok());
  EXPECT_EQ(store->CheckRoom(kTwo, 1).reason(), "storage_share");
  EXPECT_EQ(store->CheckRoom(kOne, 0).reason(), "storage_share") << "it has more than is left";

  // Those that are there count after a start as well, and what is deleted is room again.
  store = Open(store->limits());
  EXPECT_EQ(store->CheckRoom(kOne, 1).reason(), "storage_share");
  ASSERT_TRUE(store->Remove(kOne, store->List(kOne).front()->id).ok());
  EXPECT_TRUE(store->CheckRoom(kOne, 5).ok());
  EXPECT_EQ(store->CheckRoom(kOne, 6).reason(), "storage_share");

  // Likewise of files, however small.
  ASSERT_TRUE(Add(*store, kOne, "0").ok());
  ASSERT_TRUE(Add(*store, kOne, "0").ok());
  EXPECT_EQ(store->CheckRoom(kOne, 1).reason(), "storage_share");
  EXPECT_TRUE(store->CheckRoom(kTwo, 0).ok());
}

TEST_F(FileStoreTest, AFullDiskIsTold) {
  auto store = Open();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto added = Add(*store, kOne, std::string(2000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(added.status().code(), base::Code::kOverloaded);
  EXPECT_EQ(added.status().reason(), "disk_full");
  EXPECT_EQ(added.status().message().find(folder), std::string::npos) << added.status().message();
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_EQ(store->count(), 0u);
  EXPECT_TRUE(Add(*store, kOne, "x").ok());
}

TEST_F(FileStoreTest, RemovesWhatHasExpiredUnlessItIsInUse) {
  auto store = Open();
  const std::string short_lived = (*Add(*store, kOne, "x", 100))->id;
  const std::string used = (*Add(*store, kOne, "y", 100))->id;
  const std::string lasting = (*Add(*store, kOne, "z"))->id;
  const auto in_use = [&](const std::string& id) { return id == used; };
  store->RemoveExpired(in_use);
  EXPECT_EQ(store->count(), 3u);
  clock.Advance(base::Seconds(100));
  store = Open();
  store->RemoveExpired(in_use);
  EXPECT_EQ(store->Find(kOne, short_lived), nullptr);
  EXPECT_NE(store->Find(kOne, used), nullptr);
  clock.Advance(base::Seconds(100));
  store->RemoveExpired([](const std::string&) { return false; });
  EXPECT_EQ(store->Find(kOne, used), nullptr);
  EXPECT_NE(store->Find(kOne, lasting), nullptr);
}

}  // namespace
}  // namespace plumb::api
