// api/batch_room_test.cc
// Batches whose answers have no room among their caller's files, and stores that are full.
#include "api/batch_run.h"
#include "api/testing/batch_runner_fixture.h"

namespace plumb::api {
namespace {

TEST_F(BatchRunnerTest, AnAnswerWithoutRoomIsAnErrorAndSoAreTheLinesAfterIt) {
  constexpr int kLines = 40;
  const uint64_t input_bytes = InputOf(kLines).size();
  file_limits = {.storage_bytes_max = 2 * input_bytes + kLines * 640 + 2000, .shared = false};
  Start({.lines_at_once = 1});
  const std::string id = Begin(kLines);
  int answered = 0;
  while (!process->runner.idle()) {
    if (!process->sent.empty()) {
      process->Answer();
      ++answered;
    }
    process->Turn();
  }
  const Batch& batch = BatchOf(id);
  EXPECT_EQ(batch.status, BatchStatus::kCompleted);
  EXPECT_GT(batch.counts.completed, 1u);
  EXPECT_EQ(batch.counts.completed + 1, static_cast<uint32_t>(answered)) << "the rest is not asked";
  EXPECT_EQ(batch.counts.completed + batch.counts.failed, static_cast<uint32_t>(kLines));
  EXPECT_EQ(process->CustomIds(batch.output_file_id).size(), batch.counts.completed);
  EXPECT_EQ(process->CustomIds(batch.error_file_id).size(), batch.counts.failed);
  std::istringstream errors(process->ContentOf(kOne, batch.error_file_id));
  for (std::string line; std::getline(errors, line);) {
    EXPECT_EQ(json::parse(line)["error"]["code"], "storage_full");
    EXPECT_TRUE(json::parse(line)["response"].is_null());
  }
  EXPECT_LE(process->files->Find(kOne, batch.output_file_id)->bytes, 2000u);
  // Nothing is held any more: without its files there is all the room again.
  for (const std::string& file : {batch.input_file_id, batch.output_file_id, batch.error_file_id})
    EXPECT_TRUE(process->files->Remove(kOne, file).ok());
  EXPECT_TRUE(process->files->CheckRoom(kTwo, file_limits.storage_bytes_max).ok());
}

TEST_F(BatchRunnerTest, WhatIsJournaledCountsAsItsCallersFilesAlsoAfterARestart) {
  const uint64_t input_bytes = InputOf(2).size();
  file_limits = {.storage_bytes_max = 2 * input_bytes + 2 * 640 + 3000};
  for (const bool restarted : {false, true}) {
    if (!restarted) {
      Start();
      Begin(2);
      process->Answer();
      process->Turn();
    } else {
      Start();
      process->Turn();
    }
    EXPECT_EQ(process->files->CheckRoom(kTwo, 3000).reason(), "storage_full");
    EXPECT_TRUE(process->files->CheckRoom(kTwo, 1200).ok());
    EXPECT_EQ(process->files->CheckRoom(kOne, 1200).reason(), "storage_share");
  }
}

TEST_F(BatchRunnerTest, ABatchWithoutRoomToRefuseItsLinesFails) {
  file_limits = {.storage_bytes_max = InputOf(9).size() + 1000, .shared = false};
  Start();
  const std::string id = Begin(9);
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kFailed);
  ASSERT_EQ(BatchOf(id).errors.size(), 1u);
  EXPECT_EQ(BatchOf(id).errors[0].code, "storage_full");
  EXPECT_TRUE(process->sent.empty());
  EXPECT_TRUE(process->files->CheckRoom(kOne, 1000).ok()) << "nothing is held";
}

TEST_F(BatchRunnerTest, InAFullStoreWhoHasNoneTakesThePlaceOfAnEndedOneOfWhoHasMost) {
  telemetry::Logger logger{{.level = telemetry::LogLevel::kOff}};
  const auto store = *BatchStore::Open(scratch.File("full"), {.batches_max = 5}, logger);
  const auto add = [&](uint8_t caller, bool ended) -> std::string {
    Batch batch;
    batch.caller = base::Hash256{{caller}};
    batch.created_at = 1;
    auto added = store->Add(batch);
    if (!added.ok()) return std::string(base::CodeName(added.status().code()));
    batch = **added;
    if (!ended) return batch.id;
    batch.status = BatchStatus::kFailed;
    batch.failed_at = 1;
    EXPECT_TRUE(store->Put(batch).ok());
    return batch.id;
  };
  add(1, true);
  const std::string running = add(2, false);
  const std::string oldest = add(2, true);
  add(2, true);
  add(2, true);
  add(3, false);
  EXPECT_EQ(store->Find(base::Hash256{{2}}, oldest), nullptr);
  EXPECT_NE(store->Find(base::Hash256{{2}}, running), nullptr) << "it has not ended";
  EXPECT_EQ(store->List(base::Hash256{{1}}).size(), 1u) << "another has more";
  for (uint8_t caller = 4; caller < 7; ++caller) add(caller, false);
  EXPECT_EQ(add(7, false), base::CodeName(base::Code::kOverloaded)) << "none has ended";
}

}  // namespace
}  // namespace plumb::api
