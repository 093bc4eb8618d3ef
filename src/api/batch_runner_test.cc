// api/batch_runner_test.cc
// Batches from their creation to their files, by a runner whose every line is answered by the test:
// crashes between any two steps, no room, cancelling, time that is over, and turns between callers.
#include "api/batch_runner.h"

#include "api/errors.h"
#include "api/testing/batch_runner_fixture.h"

namespace plumb::api {
namespace {

TEST_F(BatchRunnerTest, AnswersStandInTheOrderOfTheInput) {
  Start();
  const std::string id = Begin(3);
  ASSERT_EQ(process->sent.size(), 3u);
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kInProgress);
  std::swap(process->sent[0], process->sent[2]);
  process->Answer();
  process->Turn();
  EXPECT_EQ(BatchOf(id).counts.completed, 1u) << "told as soon as it is on the disk";
  FinishAll();
  const Batch& batch = BatchOf(id);
  EXPECT_EQ(batch.status, BatchStatus::kCompleted);
  const std::string output = process->ContentOf(kOne, batch.output_file_id);
  EXPECT_THAT(process->CustomIds(batch.output_file_id), ElementsAre("id-0", "id-1", "id-2"));
  const json first = json::parse(output.substr(0, output.find('\n')));
  EXPECT_EQ(first["response"]["status_code"], 200);
  EXPECT_EQ(first["response"]["body"]["echo"]["n"], 0);
  EXPECT_TRUE(first["error"].is_null());
  EXPECT_FALSE(batch.has_errors);
  EXPECT_EQ(process->files->count(), 2u) << "input and output";
}

TEST_F(BatchRunnerTest, ErrorsGoToAFileOfTheirOwn) {
  Start();
  const std::string id = Begin(3);
  process->Answer(400);
  process->Answer(500);
  FinishAll();
  const Batch& batch = BatchOf(id);
  EXPECT_EQ(batch.counts.completed, 1u);
  EXPECT_EQ(batch.counts.failed, 2u);
  EXPECT_THAT(process->CustomIds(batch.output_file_id), ElementsAre("id-2"));
  EXPECT_THAT(process->CustomIds(batch.error_file_id), ElementsAre("id-0", "id-1"));
}

// After each answer, and with answers that were given but not yet taken, the process is killed.
TEST_F(BatchRunnerTest, GoesOnAfterACrashAtAnyAnswer) {
  constexpr int kLines = 6;
  Start({.lines_at_once = 2});
  const std::string id = Begin(kLines);
  uint32_t told = 0;
  std::map<std::string, int> asked;
  for (int crashes = 0; !process->runner.idle(); ++crashes) {
    ASSERT_LT(crashes, 100);
    process->Turn();
    EXPECT_GE(BatchOf(id).counts.completed, told) << "what was told is not taken back";
    told = BatchOf(id).counts.completed;
    if (!process->sent.empty()) {
      ++asked[process->sent.front().request_id];
      process->Answer();
      if (crashes % 2 == 0) process->Turn();  // else the answer is lost
      told = BatchOf(id).counts.completed;
    }
    Start({.lines_at_once = 2});
    EXPECT_GE(BatchOf(id).counts.completed, told) << "before the first turn, too";
  }
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kCompleted);
  EXPECT_THAT(process->CustomIds(BatchOf(id).output_file_id),
              ElementsAre("id-0", "id-1", "id-2", "id-3", "id-4", "id-5"));
  EXPECT_EQ(asked.size(), static_cast<size_t>(kLines)) << "a line is the same request again";
}

// The end writes both files, data and record each, then the batch's record, and removes the
// journal. A crash leaves any beginning of that.
TEST_F(BatchRunnerTest, GoesOnAfterACrashAtAnyStepOfTheEnd) {
  namespace fs = std::filesystem;
  const auto copy = fs::copy_options::recursive;
  Start();
  const std::string id = Begin(2);
  process->Answer(400);
  process->Answer();
  process->Turn();
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kCompleted);
  // The record as it was before the end, with a journal of both lines, as a crash leaves it.
  Batch running = BatchOf(id);
  running.status = BatchStatus::kFinalizing;
  running.completed_at = 0;
  running.has_output = running.has_errors = false;
  const std::string folder = scratch.path();
  const base::ScratchFolder before;
  process.reset();
  const std::vector<std::string> made = {
      "/files/" + running.output_file_id + ".data", "/files/" + running.output_file_id + ".json",
      "/files/" + running.error_file_id + ".data", "/files/" + running.error_file_id + ".json"};
  fs::copy(folder, before.path(), copy | fs::copy_options::overwrite_existing);
  for (size_t steps = 0; steps <= made.size(); ++steps) {
    fs::remove_all(folder);
    fs::copy(before.path(), folder, copy);
    for (size_t i = steps; i < made.size(); ++i) fs::remove(folder + made[i]);
    const std::string record = folder + "/batches/" + running.id;
    ASSERT_TRUE(base::WriteFileAtomic(record + ".json", BatchRecordJson(running)).ok());
    auto journal = *BatchJournal::Open(record + ".journal", 2);
    const std::vector<LineResult> results = {
        {.line = 0, .kind = ResultKind::kError, .text = "{\"custom_id\":\"id-0\"}"},
        {.line = 1, .text = "{\"custom_id\":\"id-1\"}"}};
    ASSERT_TRUE(journal->Append(results).ok());
    Start();
    process->Turn();
    EXPECT_TRUE(process->sent.empty()) << "nothing is asked again";
    const Batch& batch = BatchOf(running.id);
    EXPECT_EQ(batch.status, BatchStatus::kCompleted) << steps;
    EXPECT_TRUE(batch.has_output && batch.has_errors);
    EXPECT_EQ(process->files->count(), 3u) << "no file twice, after " << steps;
    EXPECT_THAT(process->CustomIds(batch.output_file_id), ElementsAre("id-1"));
    EXPECT_THAT(process->CustomIds(batch.error_file_id), ElementsAre("id-0"));
    EXPECT_FALSE(fs::exists(record + ".journal"));
    process.reset();
  }
}

TEST_F(BatchRunnerTest, WhoIsRefusedForLackOfRoomAsksLater) {
  Start({.lines_at_once = 1});
  const std::string id = Begin(2);
  process->Answer(503, {{"Retry-After", "2"}});
  process->Turn();
  EXPECT_TRUE(process->sent.empty()) << "it waits as it was told";
  clock.Advance(base::Seconds(2));
  FinishAll();
  EXPECT_EQ(BatchOf(id).counts.completed, 2u);
  EXPECT_EQ(BatchOf(id).counts.failed, 0u);
}

// A limit of its caller's key: no line fails for it, and few are asked in vain.
TEST_F(BatchRunnerTest, WhoIsRefusedForALimitAsksFewerAtOnce) {
  Start({.lines_at_once = 8});
  const std::string id = Begin(10);
  ASSERT_EQ(process->sent.size(), 8u);
  for (int i = 0; i < 6; ++i) process->Answer(429, {{"Retry-After", "2"}});
  for (int i = 0; i < 2; ++i) process->Answer();
  process->Turn();
  EXPECT_TRUE(process->sent.empty()) << "it waits as it was told";
  clock.Advance(base::Seconds(2));
  process->Turn();
  EXPECT_EQ(process->sent.size(), 3u) << "one, and one more for each of two answers";
  FinishAll();
  EXPECT_EQ(BatchOf(id).counts.completed, 10u);
  EXPECT_EQ(BatchOf(id).counts.failed, 0u);
}

TEST_F(BatchRunnerTest, ACancelledBatchKeepsWhatIsDone) {
  Start({.lines_at_once = 2});
  const std::string id = Begin(3);
  process->Answer();
  process->Turn();
  ASSERT_TRUE(process->runner.Cancel(BatchOf(id)).ok());
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kCancelling);
  ASSERT_TRUE(process->runner.Cancel(BatchOf(id)).ok()) << "once more is no error";
  process->Turn();
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kCancelling) << "a line is still under way";
  for (const LineRequest& line : process->sent) EXPECT_TRUE(line.exchange->closed());
  process->Answer(499);
  process->Answer();  // had its answer before it heard
  process->Turn();
  const Batch& batch = BatchOf(id);
  EXPECT_EQ(batch.status, BatchStatus::kCancelled);
  EXPECT_EQ(batch.counts.completed, 2u);
  EXPECT_THAT(process->CustomIds(batch.error_file_id), testing::SizeIs(1));
  EXPECT_THAT(process->ContentOf(kOne, batch.error_file_id), HasSubstr("batch_cancelled"));
  EXPECT_TRUE(process->runner.Cancel(batch).ok());
}

TEST_F(BatchRunnerTest, ABatchEndsWhenItsTimeIsOver) {
  Start({.lines_at_once = 1});
  const std::string id = Begin(2);
  process->Answer();
  process->Turn();
  clock.Advance(base::Seconds(24 * 3600));
  process->Turn();
  ASSERT_EQ(process->sent.size(), 1u);
  EXPECT_TRUE(process->sent.front().exchange->closed());
  process->Answer(499);
  process->Turn();
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kExpired);
  EXPECT_EQ(BatchOf(id).counts.completed, 1u);
  EXPECT_THAT(process->ContentOf(kOne, BatchOf(id).error_file_id), HasSubstr("batch_expired"));
  EXPECT_EQ(process->runner.Cancel(BatchOf(id)).reason(), "batch_not_cancellable");
}

TEST_F(BatchRunnerTest, BatchesThatWaitAreCancelledAndExpireToo) {
  Start({.batches_at_once = 1});
  const std::string first = Begin(1);
  const std::string waiting = Begin(1);
  const std::string late = Begin(1);
  ASSERT_TRUE(process->runner.Cancel(BatchOf(waiting)).ok());
  Start({.batches_at_once = 1});  // over a restart, too
  clock.Advance(base::Seconds(24 * 3600));
  process->Turn();
  EXPECT_EQ(BatchOf(first).status, BatchStatus::kExpired);
  EXPECT_EQ(BatchOf(waiting).status, BatchStatus::kCancelled);
  EXPECT_EQ(BatchOf(late).status, BatchStatus::kExpired);
  EXPECT_TRUE(process->runner.idle());
}

TEST_F(BatchRunnerTest, BatchesTakeTurnsAndCallersGoBeforeSecondBatches) {
  Start({.lines_at_once = 4, .batches_at_once = 2});
  process->Create(kOne, process->Upload(kOne, InputOf(9)));
  process->Create(kOne, process->Upload(kOne, InputOf(9)));
  process->Create(kTwo, process->Upload(kTwo, InputOf(9)));
  process->Turn();
  ASSERT_EQ(process->sent.size(), 4u);
  const auto of = [&](const base::Hash256& caller) {
    return std::ranges::count_if(process->sent,
                                 [&](const LineRequest& line) { return line.caller == caller; });
  };
  EXPECT_EQ(of(kOne), 2);
  EXPECT_EQ(of(kTwo), 2);
}

TEST_F(BatchRunnerTest, FewLinesAreAskedWhileOthersWait) {
  Start({.lines_at_once = 8, .lines_beside_others = 2});
  process->others = 1;
  Begin(20);
  EXPECT_EQ(process->sent.size(), 2u);
  process->others = 0;
  process->Turn();
  EXPECT_EQ(process->sent.size(), 8u);
  process->others = 1;
  for (int i = 0; i < 6; ++i) process->Answer();
  process->Turn();
  EXPECT_EQ(process->sent.size(), 2u) << "none is taken back, none is added";
}

TEST_F(BatchRunnerTest, APausedRunnerSendsNothing) {
  Start();
  process->runner.Pause();
  const std::string id = Begin(2);
  EXPECT_TRUE(process->sent.empty());
  Start();
  FinishAll();
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kCompleted);
}

TEST_F(BatchRunnerTest, TheOldestEndedBatchIsForgottenAndARunningOneNever) {
  Start();
  const std::string first = Begin(1);
  FinishAll();
  Begin(1);
  Begin(1);
  Begin(1);
  EXPECT_EQ(process->batches->Find(kOne, first), nullptr);
  Batch more;
  more.caller = kOne;
  EXPECT_EQ(process->runner.Create(more).status().code(), base::Code::kQuotaExceeded);
  more.caller = kTwo;
  EXPECT_TRUE(process->runner.Create(more).ok());
}

TEST_F(BatchRunnerTest, AClockMayBeginAtZero) {
  base::ManualClock zero;
  process.emplace(scratch.path(), zero, BatchRunnerOptions{}, file_limits);
  const std::string id = Begin(2);
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kInProgress);
  process->Answer();
  process->Turn();
  process.reset();
  process.emplace(scratch.path(), zero, BatchRunnerOptions{}, file_limits);
  EXPECT_EQ(BatchOf(id).counts.completed, 1u);
  ASSERT_TRUE(process->runner.Cancel(BatchOf(id)).ok());
  process->Turn();
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kCancelled);
  process.reset();
}

TEST_F(BatchRunnerTest, AnInputThatIsGoneFailsTheBatch) {
  Start();
  const std::string input = process->Upload(kOne, InputOf(1));
  const std::string id = process->Create(kOne, input);
  EXPECT_TRUE(process->runner.Uses(input));
  ASSERT_TRUE(process->files->Remove(kOne, input).ok());
  process->Turn();
  EXPECT_EQ(BatchOf(id).status, BatchStatus::kFailed);
  EXPECT_EQ(BatchOf(id).errors.front().code, "input_file_missing");
  EXPECT_FALSE(process->runner.Uses(input));
}

TEST(BatchRecord, AStatusHasItsMoment) {
  Batch batch;
  batch.id = NewStoredId(kBatchIdPrefix);
  batch.sequence = 1;
  batch.output_file_id = batch.error_file_id = NewStoredId(kFileIdPrefix);
  for (const BatchStatus status :
       {BatchStatus::kInProgress, BatchStatus::kFinalizing, BatchStatus::kCancelling}) {
    batch.status = status;
    EXPECT_FALSE(ReadBatchRecord(BatchRecordJson(batch)).ok()) << BatchStatusName(status);
  }
  batch.status = BatchStatus::kCancelling;
  batch.cancelling_at = 1;
  EXPECT_TRUE(ReadBatchRecord(BatchRecordJson(batch)).ok());
}

TEST(BatchRecord, IsReadBackAsItWasAndNeverWhenCut) {
  Batch batch;
  batch.id = NewStoredId(kBatchIdPrefix);
  batch.sequence = 7;
  batch.caller = kTwo;
  batch.endpoint = kEndpoint;
  batch.input_file_id = NewStoredId(kFileIdPrefix);
  batch.output_file_id = NewStoredId(kFileIdPrefix);
  batch.error_file_id = NewStoredId(kFileIdPrefix);
  batch.metadata = {{"k", "v\n"}};
  batch.status = BatchStatus::kFailed;
  batch.errors = {{.code = "c", .message = "m", .param = "p", .line = 3}, {.code = "d"}};
  batch.counts = {.total = 5, .completed = 2, .failed = 1};
  batch.created_at = 1;
  batch.failed_at = 9;
  batch.has_output = true;
  batch.output_expires_after = 3600;
  const std::string text = BatchRecordJson(batch);
  const auto read = ReadBatchRecord(text);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(BatchRecordJson(*read), text);
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(ReadBatchRecord(text.substr(0, size)).ok()) << size;
}

}  // namespace
}  // namespace plumb::api
