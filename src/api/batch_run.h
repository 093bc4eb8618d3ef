// api/batch_run.h
// One batch on its way: its lines are checked, sent a few at a time, journaled as their answers
// come, and written into the output files at the end. Every step is on the disk before it is told,
// and may be taken again after a crash; a disk that is full or gone is tried again later. What is
// journaled counts as its caller's files: a line whose answer has no room, and each after it, is an
// error; room to say that of all is taken before the first. Read next: api/batch_runner.h.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/batch_input.h"
#include "api/batch_journal.h"
#include "api/batch_record.h"
#include "api/batch_store.h"
#include "api/file_store.h"
#include "api/line_exchange.h"
#include "base/clock.h"
#include "telemetry/log.h"

namespace plumb::api {

// A line as it goes to its endpoint.
struct LineRequest {
  std::string endpoint;
  std::string body;
  std::string request_id;
  base::Hash256 caller;
  std::unique_ptr<net::HttpExchange> exchange;
};

// What became of it.
struct LineAnswer {
  std::string batch_id;
  uint32_t line = 0;
  net::HttpResponse response;
};

// What runs share. All borrowed.
struct BatchParts {
  FileStore& files;
  BatchStore& batches;
  const base::Clock& clock;
  telemetry::Logger& logger;
  std::function<void(LineRequest request)> send;
  std::function<void(LineAnswer answer)> answered;  // called on any thread; must not block
  // Requests that are being answered, lines among them; empty: nobody else asks.
  std::function<size_t()> live = {};
};

// A resource type. Thread: one at a time.
class BatchRun {
 public:
  // Of a batch that has not ended; also one that another process began.
  BatchRun(Batch batch, const BatchParts& parts, const BatchInputLimits& limits)
      : batch_(std::move(batch)), parts_(parts), limits_(limits) {}
  ~BatchRun() { parts_.files.GiveBack(batch_.caller, held_); }
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  const Batch& batch() const { return batch_; }
  bool ended() const { return HasEnded(batch_.status); }
  size_t running() const { return running_.size(); }

  // One piece of what is to do. True: there is more that can be done at once.
  bool Work();
  // Whether SendLine has one to send.
  bool HasLine() const;
  void SendLine();
  // Whether there are answers to be kept, which the next Work does.
  bool HasResults() const;
  // The answer to a line that was sent.
  void Take(LineAnswer answer);
  // kInvalidArgument: too late; StorageError.
  base::Status Cancel();

 private:
  // Each is a piece of work; a failure of the disk is returned, and the piece is done again later.
  base::Result<bool> DoWork();
  base::Status Check(bool& done);
  base::Status OpenInput();
  base::Status Begin();
  base::Status Keep();
  void Hold(LineResult& result);
  static uint64_t RefusedBytes(const BatchInput& input);  // at most, of all lines
  LineResult Refused(uint32_t line) const;
  base::Status Finish();
  base::Status WriteOutput();
  base::Status WriteErrors(BatchStatus outcome);
  base::Status Commit(std::unique_ptr<FileWriter> writer, const std::string& id,
                      std::string_view what);
  base::Status End(BatchStatus status, int64_t Batch::* time);
  base::Status Put(Batch next);
  base::Status FailWith(std::vector<BatchError> errors);
  void StopLines();
  bool expired() const { return batch_.expires_at <= parts_.clock.UnixSeconds(); }

  Batch batch_;
  const BatchParts& parts_;
  const BatchInputLimits limits_;
  std::unique_ptr<BatchInput> input_;      // from its first work on
  std::unique_ptr<BatchCheck> check_;      // while it is being checked
  std::unique_ptr<BatchJournal> journal_;  // from kInProgress on
  uint32_t next_ = 0;                      // the first line that was not sent
  std::deque<uint32_t> again_;             // lines that were sent in vain
  std::map<uint32_t, std::shared_ptr<LineCall>> running_;
  std::vector<LineResult> results_;  // not yet in the journal
  uint64_t held_ = 0;                // bytes that count as the caller's: for refusals, and answers
  base::Status full_;                // not ok: there was no room for an answer
  bool stopped_ = false;             // no more lines: cancelled or out of time
  base::Instant work_from_{0};       // after an error of the disk
  base::Instant send_from_{0};       // after the server had no room
  // Lines that it seems to have room for: fewer by half after each that it refused, one more after
  // each that it answered.
  size_t room_ = SIZE_MAX;
};

}  // namespace plumb::api
