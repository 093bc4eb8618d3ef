// api/batch_runner.h
// All batches that have not ended: some run side by side and share the lines that may be asked at
// once, in turns; the others wait, and the caller with the fewest running ones is next. Read next:
// api/batches.h (the thread that drives this), api/batch_run.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/batch_run.h"

namespace plumb::api {

struct BatchRunnerOptions {
  uint32_t lines_at_once = 32;
  // While others are being answered, too: each row of a step that is a line's makes it longer.
  uint32_t lines_beside_others = 4;
  uint32_t batches_at_once = 16;
  int64_t window_seconds = 24 * 60 * 60;
  BatchInputLimits input;
};

// A resource type. Thread: one at a time, Pause excepted.
class BatchRunner {
 public:
  // Takes up what the store has that has not ended.
  BatchRunner(const BatchRunnerOptions& options, BatchParts parts);

  // Caller, endpoint, input_file_id, metadata and output_expires_after are given. The errors of
  // BatchStore::Add. The pointer is valid until the next call.
  base::Result<const Batch*> Create(Batch batch);
  // As BatchRun::Cancel; an ended one is too late. The batch is the caller's.
  base::Status Cancel(const Batch& batch);
  void Take(LineAnswer answer);

  // A piece of every batch's work, and lines as long as there is room for them. True: there is more
  // to do at once.
  bool Turn();
  // No more lines from now on: the server is stopping. Thread: any.
  void Pause() { paused_.store(true); }

  // Whether a batch that has not ended reads that file.
  bool Uses(const std::string& file_id) const;
  bool idle() const { return runs_.empty() && waiting_.empty(); }

 private:
  void StartWaiting();
  void SendLines();
  BatchRun* FindRun(const std::string& id);

  const BatchRunnerOptions options_;
  const BatchParts parts_;
  std::vector<std::unique_ptr<BatchRun>> runs_;
  std::vector<Batch> waiting_;  // oldest first
  size_t next_run_ = 0;         // whose turn it is
  std::atomic<bool> paused_{false};
};

}  // namespace plumb::api
